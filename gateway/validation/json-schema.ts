/** JSON Schema: how the gateway compiles schemas, and how it describes what breaks them. */
import { Ajv2020, type ErrorObject, type Options, type ValidateFunction } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import type { JsonSchema } from '../plugin/plugin.ts'
import { type Issue, pointerOf, stepsOf } from './issue.ts'
import { isObject } from './json.ts'

/** Schemas by file name or `$id`, e.g. "gold.json". */
export type Schemas = ReadonlyMap<string, JsonSchema>

const LENIENT: Options = { strictTypes: false, strictRequired: false, strictTuples: false, allowUnionTypes: true }

/**
 * Creates an Ajv instance that knows all schemas by name. It is strict about keywords: a misspelt keyword fails to
 * compile instead of being ignored. An invalid schema fails only the schemas that refer to it.
 */
export function createAjv(schemas: Schemas, options: Options): Ajv2020 {
  const ajv = new Ajv2020({ strict: true, verbose: true, validateSchema: false, ...LENIENT, ...options })
  formats.default(ajv)
  ajv.addKeyword({ keyword: 'tsType', schemaType: 'string' })
  ajv.addKeyword({ keyword: 'upload', schemaType: 'boolean', validate: (_: boolean, value: unknown) => isFile(value) })
  for (const [name, schema] of schemas) ajv.addSchema(schema, name, false, false)
  return ajv
}

/** Returns true for an uploaded file: an object whose `bytes` are binary. */
export function isFile(value: unknown): value is { readonly bytes: Uint8Array } {
  return typeof value === 'object' && value !== null && (value as { bytes?: unknown }).bytes instanceof Uint8Array
}

/** A schema does not compile. */
export class SchemaError extends Error {
  /** The field of the operation that holds the schema, e.g. "query". */
  readonly part: string

  constructor(part: string, cause: unknown) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    super(
      `Is not a valid JSON Schema: ${reason.replace(/^strict mode: /, '')}. Correct it, or the schema it refers to.`,
    )
    this.name = 'SchemaError'
    this.part = part
  }
}

/** For schemas that check few values per process: optimizing their code takes longer than running it unoptimized. */
export const COMPILED_SOON: Options = { code: { optimize: false } }

/**
 * Compiles a schema of the gateway itself, which may refer to those that are `known`. Tests check it against the meta-schema, because that would slow down every
 * start.
 */
export function compileOwn(
  schema: JsonSchema,
  options: Options = { allErrors: true },
  known: Schemas = new Map(),
): ValidateFunction {
  return createAjv(known, { ...COMPILED_SOON, ...options }).compile(schema)
}

/** Checks schemas by their meta-schema. It is shared, because compiling the meta-schema takes longer than most schemas. */
const metaSchema = new Ajv2020({ strict: true, verbose: true, ...COMPILED_SOON })

/**
 * Compiles a schema. Throws SchemaError with `part` if the schema is invalid.
 *
 * @param options.isChecked the schema is known to follow the meta-schema
 */
export function compile(
  ajv: Ajv2020,
  schema: JsonSchema,
  part: string,
  { isChecked = false }: { readonly isChecked?: boolean } = {},
): ValidateFunction {
  try {
    if (!isChecked && metaSchema.validateSchema(schema) !== true)
      throw new Error(metaSchema.errorsText(metaSchema.errors, { dataVar: 'schema' }))
    return ajv.compile(schema)
  } catch (error) {
    throw new SchemaError(part, error)
  }
}

/** Describes how the content of a configuration file breaks its schema, with the advice in the schema's descriptions. */
export function schemaIssues(validate: ValidateFunction, file: string, content: unknown): Issue[] {
  if (validate(content)) return []
  return violationsOf(validate).map((violation) => ({
    file,
    pointer: pointerOf(...violation.path),
    rule: violation.rule,
    message: withAdvice(violation),
  }))
}

function withAdvice({ rule, message, input, path, schema }: Violation): string {
  const described = isObject(schema) ? schema : {}
  if (rule === 'required') {
    const field = (described['properties'] as Record<string, JsonSchema> | undefined)?.[String(path.at(-1))]
    return [message, field?.['description']].filter(Boolean).join(' ')
  }
  if (rule === 'additionalProperties') return message
  const found = rule === 'pattern' ? `Is ${JSON.stringify(input)}.` : message
  return [found, described['description']].filter(Boolean).join(' ')
}

/** One way in which a value breaks its schema. */
export interface Violation {
  /** Path from the validated value to the part that is wrong. Array positions are numbers. */
  readonly path: readonly (string | number)[]
  readonly message: string
  /** A stable identifier: missing, int_parsing, enum, less_than_equal, extra_forbidden and so on. */
  readonly type: string
  readonly input: unknown
  readonly ctx?: Readonly<Record<string, unknown>>
  /** The JSON Schema keyword. */
  readonly rule: string
  /** The schema that holds the keyword. */
  readonly schema: unknown
}

type Description = readonly [type: string, message: string, ctx?: Readonly<Record<string, unknown>>]

const TYPES: Readonly<Record<string, readonly [parsing: string, type: string, noun: string]>> = {
  integer: ['int_parsing', 'int_type', 'an integer'],
  number: ['float_parsing', 'float_type', 'a number'],
  boolean: ['bool_parsing', 'bool_type', 'true or false'],
  string: ['string_type', 'string_type', 'a string'],
  array: ['list_type', 'list_type', 'a list'],
  object: ['object_type', 'object_type', 'an object'],
  null: ['null_type', 'null_type', 'null'],
}

const FORMATS: Readonly<Record<string, Description>> = {
  'date-time': ['datetime_parsing', 'Must be a time in ISO 8601 with a zone, e.g. 2026-02-01T00:00:00Z.'],
  date: ['date_parsing', 'Must be a date, e.g. 2026-02-01.'],
  time: ['time_parsing', 'Must be a time of day in ISO 8601.'],
  email: ['email', 'Must be an e-mail address.'],
  uuid: ['uuid_parsing', 'Must be a UUID.'],
  uri: ['url_parsing', 'Must be an absolute URL.'],
}

/** More errors than this are not looked at: each is compared with each choice that failed. */
const MAX_ERRORS = 500

/**
 * Describes the errors of a validation that has just failed: the first of them, if there are very many. The branches of a
 * failed anyOf or oneOf become one violation.
 * @param limit how many violations to return
 */
export function violationsOf(
  { errors }: Pick<ValidateFunction, 'errors'>,
  limit = Number.POSITIVE_INFINITY,
): Violation[] {
  const all = errors ?? []
  const found = withoutBranches(all).slice(0, limit)
  return found.map((error) => {
    const [type, message, ctx] = descriptionOf(error, all)
    const { params, instancePath } = error
    const child = (params['missingProperty'] ?? unknownField(error) ?? error.propertyName) as string | undefined
    const path = stepsOf(instancePath).map((step) => (/^\d+$/.test(step) ? Number(step) : step))
    return {
      path: child === undefined ? path : [...path, child],
      message,
      type,
      input: inputOf(error),
      ...(ctx ? { ctx } : {}),
      rule: error.keyword,
      schema: error.parentSchema,
    }
  })
}

interface Choice {
  readonly error: ErrorObject
  /** Its place among the errors. Its branches come before it. */
  readonly place: number
}

/**
 * Drops the errors of the branches of a failed anyOf or oneOf: the error of the choice covers them. Also drops the
 * wrapper errors of `if` and `propertyNames`.
 */
function withoutBranches(errors: readonly ErrorObject[]): ErrorObject[] {
  const choices: Choice[] = []
  for (let place = 0; place < errors.length && choices.length < MAX_ERRORS; place += 1) {
    const error = errors[place] as ErrorObject
    if (isChoice(error)) choices.push({ error, place })
  }
  return errors
    .slice(0, MAX_ERRORS)
    .filter(
      (error, place) =>
        !['if', 'propertyNames'].includes(error.keyword) && !choices.some((choice) => isBranch(error, place, choice)),
    )
}

const isChoice = ({ keyword }: ErrorObject): boolean => keyword === 'anyOf' || keyword === 'oneOf'

function isBranch(error: ErrorObject, place: number, choice: Choice): boolean {
  if (place >= choice.place || !error.instancePath.startsWith(choice.error.instancePath)) return false
  const [own, chosen] = [error.schemaPath, choice.error.schemaPath]
  return own.startsWith(`${chosen}/`) || own.split('#')[0] !== chosen.split('#')[0]
}

function unknownField({ params, keyword }: ErrorObject): string | undefined {
  if (keyword === 'additionalProperties') return params['additionalProperty'] as string
  return keyword === 'unevaluatedProperties' ? (params['unevaluatedProperty'] as string) : undefined
}

function inputOf(error: ErrorObject): unknown {
  const extra = unknownField(error)
  return extra === undefined ? error.data : (error.data as Record<string, unknown> | undefined)?.[extra]
}

function descriptionOf(error: ErrorObject, errors: readonly ErrorObject[]): Description {
  const { keyword, params, data } = error
  const limit = params['limit'] as number
  const plural = (noun: string): string => (limit === 1 ? noun : `${noun}s`)
  switch (keyword) {
    case 'required':
    case 'dependentRequired':
      return ['missing', 'Is required.']
    case 'additionalProperties':
    case 'unevaluatedProperties':
      return ['extra_forbidden', `Is not known here; remove it.${knownFields(error)}`]
    case 'type':
      return wrongType(params['type'] as string | string[], data)
    case 'enum': {
      const values = params['allowedValues'] as unknown[]
      return ['enum', `Must be one of ${values.map(shown).join(', ')}.`, { expected: values }]
    }
    case 'const':
      return ['const', `Must be ${shown(params['allowedValue'])}.`, { expected: params['allowedValue'] }]
    case 'minimum':
      return ['greater_than_equal', `Must be at least ${limit}.`, { ge: limit }]
    case 'exclusiveMinimum':
      return ['greater_than', `Must be more than ${limit}.`, { gt: limit }]
    case 'maximum':
      return ['less_than_equal', `Must be at most ${limit}.`, { le: limit }]
    case 'exclusiveMaximum':
      return ['less_than', `Must be less than ${limit}.`, { lt: limit }]
    case 'multipleOf':
      return ['multiple_of', `Must be a multiple of ${params['multipleOf']}.`, { multiple_of: params['multipleOf'] }]
    case 'minLength':
      return ['string_too_short', `Must have at least ${limit} ${plural('character')}.`, { min_length: limit }]
    case 'maxLength':
      return ['string_too_long', `Must have at most ${limit} ${plural('character')}.`, { max_length: limit }]
    case 'pattern':
      return ['string_pattern_mismatch', wrongForm(error), { pattern: params['pattern'] }]
    case 'format':
      return FORMATS[params['format'] as string] ?? ['format', `Must be a valid ${params['format']}.`]
    case 'minItems':
      return ['too_short', `Must have at least ${limit} ${plural('item')}.`, { min_length: limit }]
    case 'maxItems':
      return ['too_long', `Must have at most ${limit} ${plural('item')}.`, { max_length: limit }]
    case 'minProperties':
      return ['too_short', `Must have at least ${limit} ${plural('field')}.`, { min_length: limit }]
    case 'maxProperties':
      return ['too_long', `Must have at most ${limit} ${plural('field')}.`, { max_length: limit }]
    case 'uniqueItems':
      return ['not_unique', `Items ${params['j']} and ${params['i']} are equal; keep one.`]
    case 'upload':
      return ['file_type', 'Must be a file, or its content as a string.']
    case 'anyOf':
    case 'oneOf':
      return ['union', choiceOf(error, errors)]
    default:
      return [keyword.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), `Breaks the rule ${keyword}.`]
  }
}

/** A description tells a caller more than a pattern does. Programs find the pattern in the context. */
function wrongForm({ params, parentSchema }: ErrorObject): string {
  const { pattern } = params
  const description: unknown = parentSchema?.['description']
  if (typeof description !== 'string') return `Must match ${pattern}.`
  return `Has the wrong form. ${description} It must match ${pattern}.`
}

function wrongType(type: string | readonly string[], data: unknown): Description {
  const types = [type].flat().flatMap((one) => TYPES[one] ?? [])
  const names = [type].flat().map((one) => TYPES[one]?.[2] ?? one)
  const identifier = [type].flat().map((one) => TYPES[one]?.[typeof data === 'string' ? 0 : 1])[0] ?? types[0] ?? 'type'
  return [identifier, `Must be ${names.join(' or ')}.`]
}

/** Joins the descriptions of the branches. */
function choiceOf(choice: ErrorObject, errors: readonly ErrorObject[]): string {
  if (choice.keyword === 'oneOf' && choice.params['passingSchemas'])
    return 'Matches more than one of the allowed forms; write exactly one.'
  const last = { error: choice, place: errors.indexOf(choice) }
  const branches = errors.filter(
    (error, place) => !isChoice(error) && error.instancePath === choice.instancePath && isBranch(error, place, last),
  )
  const expected = branches.map((branch) =>
    branch.keyword === 'pattern'
      ? `text that matches ${branch.params['pattern']}`
      : descriptionOf(branch, [])[1].replace(/^Must be |\.$/g, ''),
  )
  return expected.length === 0
    ? 'Matches none of the allowed forms.'
    : `Must be ${[...new Set(expected)].join(', or ')}.`
}

function knownFields({ parentSchema }: ErrorObject): string {
  const names = Object.keys((parentSchema?.['properties'] as object | undefined) ?? {}).filter(
    (name) => !name.startsWith('$'),
  )
  return names.length === 0 ? '' : ` Known: ${names.join(', ')}.`
}

const shown = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))
