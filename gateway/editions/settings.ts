/** Settings of a product: secrets filled in, checked by the plugin's own schema. */
import type { ValidateFunction } from 'ajv'
import { compile, createAjv, SchemaError, violationsOf } from '../validation/json-schema.ts'
import type { Product } from '../plugin/catalog.ts'
import { type Issue, pointerOf } from '../validation/issue.ts'
import type { JsonSchema } from '../plugin/plugin.ts'

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
): { readonly settings: Readonly<Record<string, unknown>>; readonly mistakes: readonly Issue[] } {
  const { value, missing } = withSecrets(settings, secret, '/settings')
  if (missing.length > 0) return { settings: value, mistakes: missing.map((one) => missingSecret(file, one)) }
  if (!schema) {
    const none = Object.keys(value).length === 0
    const message = 'The plugin takes no settings. Remove them.'
    return { settings: value, mistakes: none ? [] : [{ file, pointer: '/settings', rule: 'settings', message }] }
  }
  try {
    const validate = validatorOf(schema)
    if (validate(value)) return { settings: value, mistakes: [] }
    const mistakes = violationsOf(validate).map(({ path, message, rule }) => ({
      file,
      pointer: pointerOf('settings', ...path),
      rule,
      message,
    }))
    return { settings: value, mistakes }
  } catch (error) {
    if (!(error instanceof SchemaError)) throw error
    return { settings: value, mistakes: [{ file, pointer: '/plugin', rule: 'settings', message: error.message }] }
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
