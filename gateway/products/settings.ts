/** The settings of a product: secrets filled in from the environment, defaults applied, checked by the plugin's schema. */
import type { ValidateFunction } from 'ajv'
import type { Product } from '../plugin/catalog.ts'
import type { JsonSchema } from '../plugin/plugin.ts'
import { type Issue, pointerOf } from '../validation/issue.ts'
import { COMPILED_SOON, SchemaError, compile, createAjv, violationsOf } from '../validation/json-schema.ts'

/** Returns the value of an environment variable that documents may name as `env:NAME`, or null if it is not set. */
export type Secret = (name: string) => string | null

/** A variable that a document names, and that is not set, or set to nothing. */
export interface MissingSecret {
  /** JSON pointer of the string that names it. */
  readonly pointer: string
  readonly name: string
  readonly isEmpty: boolean
}

const ENV = /^env:([A-Za-z_][A-Za-z0-9_]*)$/

/**
 * Returns a copy of a value in which every string "env:NAME" is replaced by that secret. `missing` lists the variables
 * that are not set or empty, each with the JSON pointer of the string that names it.
 */
export function withSecrets<Value>(
  value: Value,
  secret: Secret,
  pointer = '',
): { readonly value: Value; readonly missing: readonly MissingSecret[] } {
  const missing: MissingSecret[] = []
  const fill = (node: unknown, at: string): unknown => {
    if (typeof node === 'string') {
      const name = ENV.exec(node)?.[1]
      if (name === undefined) return node
      const found = secret(name)
      if (found === null || found.trim() === '') missing.push({ pointer: at, name, isEmpty: found !== null })
      return found ?? ''
    }
    if (Array.isArray(node)) return node.map((item, index) => fill(item, at + pointerOf(index)))
    if (typeof node !== 'object' || node === null) return node
    return Object.fromEntries(Object.entries(node).map(([key, child]) => [key, fill(child, at + pointerOf(key))]))
  }
  return { value: fill(value, pointer) as Value, missing }
}

/** Reads the settings that a plugin is set up with, defaults applied, and lists what is wrong with them. */
export function readSettings(
  { file, settings }: Pick<Product, 'file' | 'settings'>,
  schema: JsonSchema | undefined,
  { secret, isChecked }: { readonly secret: Secret; readonly isChecked: boolean },
): { readonly settings: Readonly<Record<string, unknown>>; readonly issues: readonly Issue[] } {
  const { value, missing } = withSecrets(settings, secret, '/settings')
  if (missing.length > 0) return { settings: value, issues: missing.map((one) => missingSecret(file, one)) }
  if (!schema) {
    const isEmpty = Object.keys(value).length === 0
    const message = 'The plugin takes no settings. Remove them.'
    return { settings: value, issues: isEmpty ? [] : [{ file, pointer: '/settings', rule: 'settings', message }] }
  }
  try {
    const validate = validatorOf(schema, isChecked)
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

/** Compiled settings schemas. A loaded plugin keeps its schema object, so a reload does not compile it again. */
const compiled = new WeakMap<JsonSchema, ValidateFunction>()

/** Throws SchemaError. What is known to be a valid schema is not checked again. */
function validatorOf(schema: JsonSchema, isChecked: boolean): ValidateFunction {
  const known = compiled.get(schema)
  if (known) return known
  const ajv = createAjv(new Map(), { ...COMPILED_SOON, useDefaults: true, allErrors: true })
  const validate = compile(ajv, schema, 'settings', { isChecked })
  compiled.set(schema, validate)
  return validate
}

/** The issue of a secret that the environment does not have. */
export function missingSecret(file: string, { pointer, name, isEmpty }: MissingSecret): Issue {
  const what = isEmpty ? `The environment variable ${name} is empty.` : `The environment has no ${name}.`
  return { file, pointer, rule: 'secret', message: `${what} Set it, or remove this field.` }
}
