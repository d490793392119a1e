/** Sets one product up: settings, schemas, migrations, handlers. Keeps of the previous edition what is unchanged. */
import type { Operation, OperationId, Product } from '../plugin/catalog.ts'
import { SchemaError, type Schemas } from '../validation/json-schema.ts'
import { type Issue, pointerOf } from '../validation/issue.ts'
import type { CatalogDocument } from '../catalog/documents.ts'
import { filesOf } from '../catalog/schemas.ts'
import type { Validators } from '../catalog/validators.ts'
import { InvalidInput } from '../errors.ts'
import type { Handler, Plugin, Registration } from '../plugin/plugin.ts'
import type { EditionOptions } from './build.ts'
import { createInstance, handlerMismatch, type Instance, instanceKey } from './instance.ts'
import { createPatience, type Patience, TooLong } from './timeout.ts'
import { wordsOf } from './plugins.ts'
import { missingSecret, readSettings, withSecrets } from './settings.ts'
import { createUpstream } from './upstream.ts'

/** A product with everything an edition needs to serve it. */
export interface Made {
  readonly document: CatalogDocument
  readonly instance: Instance
  readonly validators: ReadonlyMap<OperationId, Validators>
  /** Equal where the same schemas were compiled. */
  readonly schemaKey: string
  /** Names of the schemas its operations need. */
  readonly schemaNames: readonly string[]
}

export interface Failed {
  readonly mistakes: readonly Issue[]
}

export type Setup = (
  product: Product,
  document: CatalogDocument,
  plugin: Plugin | null,
  kept: Made | undefined,
) => Promise<Made | Failed>

type Options = Pick<EditionOptions, 'contextOf' | 'migrate' | 'secret' | 'log' | 'now' | 'lease' | 'onLate'> & {
  readonly setupSeconds: number
}

export function createSetup(
  options: Options,
  schemas: Schemas,
  validatorsOf: (operation: Operation) => Validators,
): Setup {
  const migrated = new Map<Plugin, Promise<void>>()

  return async (product, document, plugin, kept) => {
    const schemaNames = filesOf(product.operations, schemas)
    const schemaKey = keyOf(product, schemaNames, schemas)
    const validators = kept?.schemaKey === schemaKey ? kept.validators : compileAll(product, validatorsOf)
    if ('mistakes' in validators) return validators
    const mistakes = exampleMistakes(product, validators)
    if (mistakes.length > 0) return { mistakes }
    const instance = product.upstream
      ? upstreamInstance(product, kept, options)
      : await pluginInstance(product, plugin as Plugin, kept, options, migrated)
    return 'mistakes' in instance ? instance : { document, instance, validators, schemaKey, schemaNames }
  }
}

function keyOf({ operations }: Product, names: readonly string[], schemas: Schemas): string {
  const own = operations.map(({ id, params, query, body, response, bodyMedia, plan, internal }) => [
    [id, params, query, body, response, bodyMedia, plan?.plan, internal],
  ])
  return JSON.stringify([own, names.map((name) => schemas.get(name))])
}

function compileAll({ file, operations }: Product, validatorsOf: (operation: Operation) => Validators) {
  const validators = new Map<OperationId, Validators>()
  const mistakes: Issue[] = []
  for (const operation of operations)
    try {
      validators.set(operation.id, validatorsOf(operation))
    } catch (error) {
      if (!(error instanceof SchemaError)) throw error
      const pointer = pointerOf('operations', operation.id, error.part)
      mistakes.push({ file, pointer, rule: 'schema', message: error.message })
    }
  return mistakes.length > 0 ? { mistakes } : validators
}

/** Examples are printed in every document and copied by buyers, so they keep their own schemas. */
function exampleMistakes({ file, operations }: Product, validators: ReadonlyMap<OperationId, Validators>): Issue[] {
  return operations.flatMap(({ id, example }) => {
    if (!example) return []
    const pointer = pointerOf('operations', id, 'example')
    const { params = {}, query = {}, body } = example.request
    const mistakes: Issue[] = []
    try {
      validators.get(id)?.input({ params, query, body })
    } catch (error) {
      if (!(error instanceof InvalidInput)) throw error
      for (const { loc, msg } of error.detail) {
        const [section, ...steps] = loc
        const place = pointer + pointerOf('request', section === 'path' ? 'params' : String(section), ...steps)
        mistakes.push({ file, pointer: place, rule: 'example', message: msg })
      }
    }
    const wrong = example.response === undefined ? null : validators.get(id)?.answer(example.response)
    if (wrong) mistakes.push({ file, pointer: `${pointer}/response`, rule: 'example', message: wrong })
    return mistakes
  })
}

function upstreamInstance(
  product: Product,
  kept: Made | undefined,
  { secret, log, now, lease }: Options,
): Instance | Failed {
  const { file, id, operations, upstream } = product
  const { value: headers, missing } = withSecrets(upstream?.headers ?? {}, secret, '/upstream/headers')
  if (missing.length > 0) return { mistakes: missing.map((one) => missingSecret(file, one)) }
  const key = instanceKey(headers, operations, upstream)
  if (kept?.instance.plugin === null && kept.instance.key === key) return kept.instance
  const handlers = createUpstream(product, headers)
  return createInstance({ product: id, plugin: null, key, handlers, registration: {}, log, now, lease })
}

async function pluginInstance(
  product: Product,
  plugin: Plugin,
  kept: Made | undefined,
  options: Options,
  migrated: Map<Plugin, Promise<void>>,
): Promise<Instance | Failed> {
  const { file, id, operations } = product
  const { log, now, lease } = options
  const { settings, mistakes } = readSettings(product, plugin.settings, options.secret)
  if (mistakes.length > 0) return { mistakes }
  const key = instanceKey(settings, operations, null)
  if (kept?.instance.plugin === plugin && kept.instance.key === key) return kept.instance
  const failed = (rule: string, message: string): Failed => ({
    mistakes: [{ file, pointer: '/plugin', rule, message }],
  })
  try {
    const registration = await registrationOf(plugin, `${id} ${key}`, options, async () => {
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
    if (error instanceof TooLong) return failed('setup', `The plugin ${plugin.name} ${wordsOf(error)}`)
    return failed('setup', `The plugin ${plugin.name} could not be set up: ${wordsOf(error)}`)
  }
}

/** Of one plugin: how long its set-ups are waited for, and those that ended later than that, until a build takes them. */
interface Waiting {
  readonly patience: Patience
  readonly arrived: Map<string, Registration>
}

const waiting = new WeakMap<Plugin, Waiting>()

/** What `setup` gives; or gave after its time, when nobody waited for it any more. Then it is not set up again. */
async function registrationOf(
  plugin: Plugin,
  key: string,
  { setupSeconds, onLate, log }: Options,
  setup: () => Promise<Registration>,
): Promise<Registration> {
  const { patience, arrived } = waiting.get(plugin) ?? { patience: createPatience(), arrived: new Map() }
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
