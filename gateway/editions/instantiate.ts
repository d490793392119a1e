/** Sets one product up: settings, schemas, migrations, handlers. Keeps of the previous edition what is unchanged. */
import type { ValidateFunction } from 'ajv'
import type { CatalogDocument } from '../catalog/documents.ts'
import { filesOf } from '../catalog/schemas.ts'
import type { Validators } from '../catalog/validators.ts'
import type { JobLease } from './jobs.ts'
import { type Instance, createInstance, handlerMismatch, instanceKey } from './instance.ts'
import { firstLineOf } from './load-plugin.ts'
import { type Timeouts, TimedOut, createTimeouts } from './timeout.ts'
import { createUpstream } from './upstream.ts'
import { InvalidInput } from '../errors.ts'
import type { Operation, OperationId, Product } from '../plugin/catalog.ts'
import type { Handler, JsonSchema, Plugin, Registration, Logger, Migration, PluginContext } from '../plugin/plugin.ts'
import { type Issue, pointerOf } from '../validation/issue.ts'
import { SchemaError, type Schemas, compile, createAjv, violationsOf } from '../validation/json-schema.ts'

/** A product with everything an edition needs to serve it. */
export interface ReadyProduct {
  readonly document: CatalogDocument
  readonly instance: Instance
  readonly validators: ReadonlyMap<OperationId, Validators>
  /** Equal where the same schemas were compiled. */
  readonly schemaKey: string
  /** Names of the schemas its operations need. */
  readonly schemaNames: readonly string[]
}

export interface Failed {
  readonly issues: readonly Issue[]
}

export type Setup = (
  product: Product,
  document: CatalogDocument,
  plugin: Plugin | null,
  kept: ReadyProduct | undefined,
) => Promise<ReadyProduct | Failed>

/** What is needed to set products up. */
export interface SetupOptions {
  contextOf(plugin: string, product: string, settings: Readonly<Record<string, unknown>>): PluginContext
  migrate(plugin: string, migrations: readonly Migration[]): Promise<void>
  /** Returns the value of `env:NAME` in documents. */
  readonly secret: Secret
  readonly log: Logger
  /** The clock of the data. */
  now(): Date
  /** When several processes share a database, each job runs in the process that holds its lease. */
  readonly lease?: JobLease
  /** Called when a plugin has loaded, or a product is set up, after its timeout. The next build uses it. */
  readonly onLate?: () => unknown
}

type Options = SetupOptions & { readonly setupSeconds: number }

export function createSetup(
  options: Options,
  schemas: Schemas,
  validatorsOf: (operation: Operation) => Validators,
): Setup {
  const migrated = new Map<Plugin, Promise<void>>()

  return async (product, document, plugin, kept) => {
    const schemaNames = filesOf(product.operations, schemas)
    const schemaKey = schemaKeyOf(product, schemaNames, schemas)
    const validators = kept?.schemaKey === schemaKey ? kept.validators : compileAll(product, validatorsOf)
    if ('issues' in validators) return validators
    const issues = exampleIssues(product, validators)
    if (issues.length > 0) return { issues }
    const instance = product.upstream
      ? upstreamInstance(product, kept, options)
      : await pluginInstance(product, plugin as Plugin, kept, options, migrated)
    return 'issues' in instance ? instance : { document, instance, validators, schemaKey, schemaNames }
  }
}

function schemaKeyOf({ operations }: Product, names: readonly string[], schemas: Schemas): string {
  const own = operations.map(({ id, params, query, body, response, bodyMedia, plan, internal }) => [
    [id, params, query, body, response, bodyMedia, plan?.plan, internal],
  ])
  return JSON.stringify([own, names.map((name) => schemas.get(name))])
}

function compileAll({ file, operations }: Product, validatorsOf: (operation: Operation) => Validators) {
  const validators = new Map<OperationId, Validators>()
  const issues: Issue[] = []
  for (const operation of operations)
    try {
      validators.set(operation.id, validatorsOf(operation))
    } catch (error) {
      if (!(error instanceof SchemaError)) throw error
      const pointer = pointerOf('operations', operation.id, error.part)
      issues.push({ file, pointer, rule: 'schema', message: error.message })
    }
  return issues.length > 0 ? { issues } : validators
}

/** Examples are printed in every document and copied by buyers, so they keep their own schemas. */
function exampleIssues({ file, operations }: Product, validators: ReadonlyMap<OperationId, Validators>): Issue[] {
  return operations.flatMap(({ id, example }) => {
    if (!example) return []
    const pointer = pointerOf('operations', id, 'example')
    const { params = {}, query = {}, body } = example.request
    const issues: Issue[] = []
    try {
      validators.get(id)?.input({ params, query, body })
    } catch (error) {
      if (!(error instanceof InvalidInput)) throw error
      for (const { loc, msg } of error.detail) {
        const [section, ...steps] = loc
        const place = pointer + pointerOf('request', section === 'path' ? 'params' : String(section), ...steps)
        issues.push({ file, pointer: place, rule: 'example', message: msg })
      }
    }
    const wrong = example.response === undefined ? null : validators.get(id)?.answer(example.response)
    if (wrong) issues.push({ file, pointer: `${pointer}/response`, rule: 'example', message: wrong })
    return issues
  })
}

function upstreamInstance(
  product: Product,
  kept: ReadyProduct | undefined,
  { secret, log, now, lease }: Options,
): Instance | Failed {
  const { file, id, operations, upstream } = product
  const { value: headers, missing } = withSecrets(upstream?.headers ?? {}, secret, '/upstream/headers')
  if (missing.length > 0) return { issues: missing.map((one) => missingSecret(file, one)) }
  const key = instanceKey(headers, operations, upstream)
  if (kept?.instance.plugin === null && kept.instance.key === key) return kept.instance
  const handlers = createUpstream(product, headers)
  return createInstance({ product: id, plugin: null, key, handlers, registration: {}, log, now, lease })
}

async function pluginInstance(
  product: Product,
  plugin: Plugin,
  kept: ReadyProduct | undefined,
  options: Options,
  migrated: Map<Plugin, Promise<void>>,
): Promise<Instance | Failed> {
  const { file, id, operations } = product
  const { log, now, lease } = options
  const { settings, issues } = readSettings(product, plugin.settings, options.secret)
  if (issues.length > 0) return { issues }
  const key = instanceKey(settings, operations, null)
  if (kept?.instance.plugin === plugin && kept.instance.key === key) return kept.instance
  const failed = (rule: string, message: string): Failed => ({
    issues: [{ file, pointer: '/plugin', rule, message }],
  })
  try {
    const registration = await setUpWithTimeout(plugin, `${id} ${key}`, options, async () => {
      if (!migrated.has(plugin)) migrated.set(plugin, options.migrate(plugin.name, plugin.migrations ?? []))
      await migrated.get(plugin)
      return plugin.setup(options.contextOf(plugin.name, id, settings))
    })
    const mismatch = handlerMismatch(product, registration.handlers)
    if (mismatch !== null) {
      await registration.stop?.()
      return failed('handlers', mismatch)
    }
    const handlers = registration.handlers as unknown as Readonly<Record<string, Handler>>
    return createInstance({ product: id, plugin, key, handlers, registration, log, now, lease })
  } catch (error) {
    log.error({ err: error, product: id }, 'a product could not be set up')
    if (error instanceof TimedOut) return failed('setup', `The plugin ${plugin.name} ${firstLineOf(error)}`)
    return failed('setup', `The plugin ${plugin.name} could not be set up: ${firstLineOf(error)}`)
  }
}

/** Of one plugin: how long its set-ups are waited for, and those that ended later than that, until a build takes them. */
interface Waiting {
  readonly patience: Timeouts
  readonly arrived: Map<string, Registration>
}

const waiting = new WeakMap<Plugin, Waiting>()

/** What `setup` gives; or gave after its time, when nobody waited for it any more. Then it is not set up again. */
async function setUpWithTimeout(
  plugin: Plugin,
  key: string,
  { setupSeconds, onLate, log }: Options,
  setup: () => Promise<Registration>,
): Promise<Registration> {
  const { patience, arrived } = waiting.get(plugin) ?? { patience: createTimeouts(), arrived: new Map() }
  waiting.set(plugin, { patience, arrived })
  const here = arrived.get(key)
  if (arrived.delete(key)) return here as Registration

  async function arrive(registration: Registration): Promise<void> {
    arrived.set(key, registration)
    await onLate?.()
    // The product has gone meanwhile, or has other settings or code.
    if (arrived.get(key) === registration && arrived.delete(key)) await registration.stop?.()
  }
  const failed = (error: unknown): void =>
    log.error({ err: error, set_up: key }, 'a product that was late came to nothing')
  return patience(key, {
    seconds: setupSeconds,
    what: 'is not set up',
    run: setup,
    late: (ended) => ('value' in ended ? void arrive(ended.value).catch(failed) : failed(ended.error)),
  })
}

export type Secret = (name: string) => string | null

const ENV = /^env:([A-Za-z_][A-Za-z0-9_]*)$/

/**
 * A copy of a value with every string "env:NAME" replaced by that secret; the names that are not set are listed by
 * the pointer where they stand.
 */
export function withSecrets<Value>(
  value: Value,
  secret: Secret,
  pointer = '',
): { readonly value: Value; readonly missing: readonly { readonly pointer: string; readonly name: string }[] } {
  const missing: { pointer: string; name: string }[] = []
  const fill = (node: unknown, at: string): unknown => {
    if (typeof node === 'string') {
      const name = ENV.exec(node)?.[1]
      if (name === undefined) return node
      const found = secret(name)
      if (found === null) missing.push({ pointer: at, name })
      return found ?? ''
    }
    if (Array.isArray(node)) return node.map((item, index) => fill(item, at + pointerOf(index)))
    if (typeof node !== 'object' || node === null) return node
    return Object.fromEntries(Object.entries(node).map(([key, child]) => [key, fill(child, at + pointerOf(key))]))
  }
  return { value: fill(value, pointer) as Value, missing }
}

/** The settings a plugin is set up with, defaults applied; or what is wrong with them. */
export function readSettings(
  { file, settings }: Product,
  schema: JsonSchema | undefined,
  secret: Secret,
): { readonly settings: Readonly<Record<string, unknown>>; readonly issues: readonly Issue[] } {
  const { value, missing } = withSecrets(settings, secret, '/settings')
  if (missing.length > 0) return { settings: value, issues: missing.map((one) => missingSecret(file, one)) }
  if (!schema) {
    const none = Object.keys(value).length === 0
    const message = 'The plugin takes no settings. Remove them.'
    return { settings: value, issues: none ? [] : [{ file, pointer: '/settings', rule: 'settings', message }] }
  }
  try {
    const validate = validatorOf(schema)
    if (validate(value)) return { settings: value, issues: [] }
    const issues = violationsOf(validate).map(({ path, message, rule }) => ({
      file,
      pointer: pointerOf('settings', ...path),
      rule,
      message,
    }))
    return { settings: value, issues }
  } catch (error) {
    if (!(error instanceof SchemaError)) throw error
    return { settings: value, issues: [{ file, pointer: '/plugin', rule: 'settings', message: error.message }] }
  }
}

/** By the schema itself: a plugin that is loaded keeps its own, so that an edition after another compiles nothing anew. */
const compiled = new WeakMap<JsonSchema, ValidateFunction>()

/** Throws SchemaError. */
function validatorOf(schema: JsonSchema): ValidateFunction {
  const known = compiled.get(schema)
  if (known) return known
  const validate = compile(createAjv(new Map(), { useDefaults: true, allErrors: true }), schema, 'settings')
  compiled.set(schema, validate)
  return validate
}

export function missingSecret(
  file: string,
  { pointer, name }: { readonly pointer: string; readonly name: string },
): Issue {
  return { file, pointer, rule: 'secret', message: `The environment has no ${name}. Set it, or remove this field.` }
}
