/** Ajv, set up for our schemas: strict about keywords, so that a misspelt rule is a mistake and not a silent hole. */
import { Ajv2020, type Options, type ValidateFunction } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import type { JsonSchema } from '../plugin/plugin.ts'
import type { Schemas } from './schemas.ts'

const LENIENT: Options = { strictTypes: false, strictRequired: false, strictTuples: false, allowUnionTypes: true }

/** One instance that knows all schemas by name. A schema that is itself invalid fails what refers to it, and no more. */
export function createAjv(schemas: Schemas, options: Options): Ajv2020 {
  const ajv = new Ajv2020({ strict: true, verbose: true, ...LENIENT, ...options })
  formats.default(ajv)
  ajv.addKeyword({ keyword: 'tsType', schemaType: 'string' })
  ajv.addKeyword({ keyword: 'upload', schemaType: 'boolean', validate: (_: boolean, value: unknown) => isFile(value) })
  for (const [name, schema] of schemas) ajv.addSchema(schema, name, false, false)
  return ajv
}

/** An Upload, seen from here: bytes with a name. */
export function isFile(value: unknown): value is { readonly bytes: Uint8Array } {
  return typeof value === 'object' && value !== null && (value as { bytes?: unknown }).bytes instanceof Uint8Array
}

/** A schema that cannot be compiled; `part` is the field of the operation that holds it. */
export class SchemaError extends Error {
  readonly part: string

  constructor(part: string, cause: unknown) {
    const words = cause instanceof Error ? cause.message : String(cause)
    super(
      `Is not a JSON Schema we can use: ${words.replace(/^strict mode: /, '')}. Correct it, or the schema it names.`,
    )
    this.name = 'SchemaError'
    this.part = part
  }
}

/** Compiles, or throws SchemaError. */
export function compile(ajv: Ajv2020, schema: JsonSchema, part: string): ValidateFunction {
  try {
    if (ajv.validateSchema(schema) !== true) throw new Error(ajv.errorsText(ajv.errors, { dataVar: 'schema' }))
    return ajv.compile(schema)
  } catch (error) {
    throw new SchemaError(part, error)
  }
}
