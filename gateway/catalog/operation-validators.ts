/** Compiled validators for the input and the answer of an operation. */
import type { Ajv2020, ValidateFunction } from 'ajv/dist/2020.js'
import { type BodyRules, bodyRulesOf, LargeBody } from './large-body.ts'
import { dereference, fieldsOf, isFileSchema } from './schemas.ts'
import { InvalidInput, type ValidationItem } from '../errors.ts'
import type { Operation } from '../plugin/catalog.ts'
import type { Input, JsonSchema } from '../plugin/plugin.ts'
import { once } from '../once.ts'
import { inputWithUnread } from '../plugin/unread-body.ts'
import { parseMeasuredJson } from '../validation/json-body.ts'
import { type Schemas, compile, createAjv, isFile, violationsOf } from '../validation/json-schema.ts'
import { isObject } from '../validation/json.ts'

export interface Validators {
  /**
   * Applies defaults and coerces strings, in a copy of `raw`. Throws InvalidInput that lists every issue. A large body was
   * checked already; it is parsed when it is first read.
   */
  input(raw: Input): Input
  /** Rules by which a thread checks large bodies. */
  bodyRules(): BodyRules
  /** Describes what is wrong with an answer, as it is sent in JSON. Null if it matches its schema. */
  answer(value: unknown): string | null
}

export type Checked = { readonly value: unknown; readonly items: readonly ValidationItem[] }
export type Check = (value: unknown) => Checked
type Fields = Readonly<Record<string, JsonSchema>>

/** The media types in which browsers send forms. */
export const FORM_MEDIA = ['multipart/form-data', 'application/x-www-form-urlencoded'] as const
/** A value with more parts is refused at its first issue: what it costs to list every issue grows with them. */
const MAX_PARTS = 5000
const MAX_ITEMS = 100
const MAX_SHOWN = 200
/** The keywords that refuse a value for its type. */
const TYPE_RULES: ReadonlySet<string> = new Set(['type', 'anyOf', 'oneOf'])

/** Shared by the functions of this file. Ajv is created when first needed: a reload without changes compiles nothing. */
interface Compilers {
  readonly schemas: Schemas
  /** For input: lists every issue, and writes defaults into the value. */
  readonly allIssues: () => Ajv2020
  /** For input: stops at the first issue, and writes defaults into the value. */
  readonly firstIssue: () => Ajv2020
  readonly answers: () => Ajv2020
  /** The check of every operation that refuses a query. */
  readonly noQuery: () => Check
  /** Whether the schemas are known to compile. */
  readonly isChecked: boolean
}

/**
 * Compiles the validators of an operation. Throws SchemaError if a schema is invalid: an unknown keyword, a wrong
 * value, or a default that cannot be applied.
 * @param options.isChecked the schemas are known to compile. Each is compiled when it is first needed
 */
export type CompileValidators = (operation: Operation, options?: { readonly isChecked: boolean }) => Validators

/** Creates the function that compiles the validators of operations with these schemas. */
export function createValidators(schemas: Schemas): CompileValidators {
  const compilers = createCompilers(schemas)
  return (operation, options) => compileValidators(compilers, operation, options?.isChecked === true)
}

function createCompilers(schemas: Schemas): Compilers {
  const compilers: Compilers = {
    schemas,
    allIssues: once(() => createAjv(schemas, { useDefaults: true, allErrors: true })),
    firstIssue: once(() => createAjv(schemas, { useDefaults: true })),
    answers: once(() => createAjv(schemas, {})),
    noQuery: once(() => queryCheck({ ...compilers, isChecked: true }, { type: 'object', properties: {} })),
    isChecked: false,
  }
  return compilers
}

function compileValidators(shared: Compilers, operation: Operation, isChecked: boolean): Validators {
  const compilers = { ...shared, isChecked }
  const { response } = operation
  const made = <Made>(make: () => Made): (() => Made) => {
    const get = once(make)
    if (!isChecked) get()
    return get
  }
  const params = made(() => paramsCheck(compilers, operation))
  const query = made(() => queryCheckOf(compilers, operation))
  const body = made(() => bodyCheck(compilers, operation))
  const rules = once(() => bodyRulesOf(operation, compilers.schemas))
  const validAnswer = made(() =>
    response === null || operation.internal ? null : compile(compilers.answers(), response, 'response', compilers),
  )
  return {
    input(raw) {
      const large = raw.body instanceof LargeBody ? raw.body : null
      const [path, search, content] = [params()(raw.params), query()(raw.query), large ?? body()(raw.body)]
      if (path.items.length + search.items.length + content.items.length > 0)
        throw new InvalidInput([...path.items, ...search.items, ...content.items])
      const input = { params: path.value, query: search.value } as Omit<Input, 'body'>
      if (!large) return { ...input, body: (content as Checked).value }
      const { bytes } = large
      return inputWithUnread(input, { bytes, rules: rules() }, () => body()(parseMeasuredJson(bytes)).value)
    },
    bodyRules: rules,
    answer(value) {
      const validate = validAnswer()
      if (!validate || validate(onTheWire(value, response?.['type'] === 'string'))) return null
      const [violation] = violationsOf(validate)
      return violation
        ? `${violation.path.join('.') || 'the answer'}: ${violation.message}`
        : 'the answer breaks its schema'
    },
  }
}

const NO_ITEMS: readonly ValidationItem[] = Object.freeze([])

/** The check of path or query of an operation that ignores them. */
const NO_INPUT: Check = () => ({ value: {}, items: NO_ITEMS })

function paramsCheck(compilers: Compilers, { params }: Operation): Check {
  if (!params) return NO_INPUT
  const schema = dereference(params, compilers.schemas)
  return textCheck(compilers, 'params', 'path', schema, fieldsOf(schema, compilers.schemas))
}

/**
 * The check of an operation's query. Pages ignore what others add to their links to count visitors, such as utm_source. Free
 * routes without any query ignore every field, since they have no input that could be invalid. Everywhere else an unknown
 * field is refused, because it may be a misspelt one.
 */
function queryCheckOf(compilers: Compilers, { query, plan, view, price, internal }: Operation): Check {
  if (plan) return NO_INPUT
  if (query === null) return price === null && !internal ? NO_INPUT : compilers.noQuery()
  const check = queryCheck(compilers, query)
  return view === null ? check : ignoringVisitCounters(check, fieldsOf(query, compilers.schemas))
}

/** Query fields that newsletters, search engines and social networks add to links. */
const VISIT_COUNTER = /^(?:utm_\w+|\w*clid|msclkid|mc_[ce]id)$/

/** A check that leaves out the fields that count visitors, unless the operation describes them. */
function ignoringVisitCounters(check: Check, fields: Fields): Check {
  const isOurs = (name: string): boolean => Object.hasOwn(fields, name) || !VISIT_COUNTER.test(name)
  return (sent) =>
    check(isObject(sent) ? Object.fromEntries(Object.entries(sent).filter(([name]) => isOurs(name))) : sent)
}

/** A query has no fields besides those described, unless its schema allows them. */
function queryCheck(compilers: Compilers, described: JsonSchema): Check {
  const schema = dereference(described, compilers.schemas)
  const closed = 'additionalProperties' in schema ? schema : { ...schema, unevaluatedProperties: false }
  return textCheck(compilers, 'query', 'query', closed, fieldsOf(schema, compilers.schemas))
}

/** Creates the check of an operation's body. Throws SchemaError if its schema is invalid. */
export function createBodyCheck(schemas: Schemas, operation: Pick<Operation, 'body' | 'bodyMedia'>): Check {
  return bodyCheck(createCompilers(schemas), operation)
}

function bodyCheck(compilers: Compilers, { body: schema, bodyMedia }: Pick<Operation, 'body' | 'bodyMedia'>): Check {
  if (!schema) return () => ({ value: undefined, items: [] })
  const fields = fieldsOf(schema, compilers.schemas)
  const files = Object.keys(fields).filter((name) => isFileSchema(fields[name]))
  if (!bodyMedia.some(isForm) && files.length === 0) return jsonCheck(compilers, schema, fields)
  const whole = withUploads(dereference(schema, compilers.schemas), fields)
  const asForm = textCheck(compilers, 'body', 'body', whole, fields)
  if (!typesOf(whole).has('array')) return asForm
  // A form is an object, so a body that may be a list is JSON unless it has a file.
  const asJson = jsonCheck(compilers, whole, fields)
  return (sent) => (isObject(sent) && files.some((name) => name in sent) ? asForm : asJson)(sent)
}

/** The check of a body that was parsed from JSON. */
function jsonCheck(
  { schemas, firstIssue, allIssues, isChecked }: Compilers,
  schema: JsonSchema,
  fields: Fields,
): Check {
  const first = compile(firstIssue(), schema, 'body', { isChecked })
  const all = once(() => compile(allIssues(), schema, 'body', { isChecked }))
  const copy = copier(dereference(schema, schemas), fields)
  return (sent) => {
    if (sent === undefined) return { value: sent, items: [{ loc: ['body'], msg: 'Is required.', type: 'missing' }] }
    const value = copy(sent)
    if (first(value)) return { value, items: [] }
    const failed = isLarge(value) || all()(value) ? first : all()
    return { value, items: itemsOf(failed, 'body') }
  }
}

/**
 * The check of values that arrive as text: path, query and form.
 *
 * @param part the field of the operation that holds the schema
 * @param section where an issue is, as its `loc` names it
 */
function textCheck(
  { allIssues, firstIssue, isChecked }: Compilers,
  part: string,
  section: string,
  schema: JsonSchema,
  fields: Fields,
): Check {
  const uploads = Object.keys(fields).filter((name) => isFileSchema(fields[name]))
  const all = compile(allIssues(), schema, part, { isChecked })
  const first = once(() => compile(firstIssue(), schema, part, { isChecked }))
  /** The input of a call that sends nothing, once it was valid and holds nothing that a handler could change. */
  let empty: Readonly<Record<string, unknown>> | null = null
  return (sent) => {
    if (sent !== undefined && !isObject(sent)) return { value: sent, items: [notAnObject(section, sent)] }
    const isEmpty = sent === undefined || isEmptyObject(sent)
    if (isEmpty && empty) return { value: { ...empty }, items: NO_ITEMS }
    const value = coerceFields(sent ?? {}, fields)
    for (const name of uploads) if (name in value) value[name] = asUpload(name, value[name])
    const validate = isLarge(value) ? first() : all
    const isValid = validate(value)
    if (isEmpty && isValid && !Object.values(value).some(isContainer)) empty = { ...value }
    return { value, items: [...nullsIn(value, section), ...(isValid ? [] : itemsOf(validate, section, true))] }
  }
}

function isEmptyObject(value: object): boolean {
  for (const _ in value) return false
  return true
}

const isContainer = (value: unknown): boolean => typeof value === 'object' && value !== null

/** @param isText says that the values arrived as text, where a list is a field that was sent more than once */
function itemsOf(validate: ValidateFunction, section: string, isText = false): ValidationItem[] {
  return violationsOf(validate, MAX_ITEMS).map(({ path, message, type, input, ctx, rule }) => ({
    loc: [section, ...path.map((step) => (typeof step === 'string' ? step.slice(0, MAX_SHOWN) : step))],
    msg: isText && Array.isArray(input) && TYPE_RULES.has(rule) ? message.replace(/\.$/, ', given once.') : message,
    type,
    ...(isScalar(input) ? { input: typeof input === 'string' ? input.slice(0, MAX_SHOWN) : input } : {}),
    ...(ctx ? { ctx } : {}),
  }))
}

function notAnObject(section: string, input: unknown): ValidationItem {
  return { loc: [section], msg: 'Must be an object.', type: 'object_type', ...(isScalar(input) ? { input } : {}) }
}

/** PostgreSQL cannot store a null character, and no sound input contains one. */
function nullsIn(fields: Readonly<Record<string, unknown>>, section: string): ValidationItem[] {
  const named = Object.entries(fields).filter(([, value]) => [value].flat().some(holdsNull))
  return named.map(([name]) => ({
    loc: [section, name],
    msg: 'Must not contain a null character.',
    type: 'value_error',
  }))
}

const holdsNull = (value: unknown): boolean => typeof value === 'string' && value.includes('\0')

/** Whether a body of this media type is a form: its fields arrive as strings and files. */
export function isForm(media: string): boolean {
  return (FORM_MEDIA as readonly string[]).includes(media)
}

const isScalar = (value: unknown): boolean => value !== undefined && (typeof value !== 'object' || value === null)

/** Makes a schema check its file fields as files. */
function withUploads(schema: JsonSchema, fields: Fields): JsonSchema {
  const files = Object.keys(fields).filter((name) => isFileSchema(fields[name]))
  if (files.length === 0) return schema
  const replaced = files.map((name) => [name, { upload: true }] as const)
  return { ...schema, properties: { ...(schema['properties'] as object), ...Object.fromEntries(replaced) } }
}

/** In JSON and over MCP a file is sent as text. */
function asUpload(name: string, value: unknown): unknown {
  if (typeof value !== 'string' || isFile(value)) return value
  return { filename: name, mediaType: 'application/octet-stream', bytes: Buffer.from(value) }
}

/** Validation writes defaults into the value, so it is copied as deep as the defaults are. */
function copier(schema: JsonSchema, fields: Fields): (value: unknown) => unknown {
  const deep =
    holdsDefault(without(schema, 'properties')) ||
    Object.values(fields).some((field) => holdsDefault(without(field, 'default')))
  if (deep) return structuredClone
  return (value) => (isObject(value) ? { ...value } : value)
}

function without(schema: JsonSchema, name: string): JsonSchema {
  return Object.fromEntries(Object.entries(schema).filter(([key]) => key !== name))
}

function holdsDefault(node: unknown): boolean {
  if (typeof node !== 'object' || node === null) return false
  return 'default' in node || Object.values(node).some(holdsDefault)
}

/** Whether a value has more than MAX_PARTS parts at any depth. Looks at no more of them. */
function isLarge(value: unknown): boolean {
  let left = MAX_PARTS
  const pending: unknown[] = [value]
  while (pending.length > 0) {
    const node = pending.pop()
    if (typeof node !== 'object' || node === null || ArrayBuffer.isView(node)) continue
    const parts: readonly unknown[] = Array.isArray(node) ? node : Object.values(node)
    left -= parts.length
    if (left < 0) return true
    // One by one: an argument list of a million parts would overflow the stack.
    for (const part of parts) pending.push(part)
  }
  return false
}

function onTheWire(value: unknown, isText: boolean): unknown {
  if (Buffer.isBuffer(value)) return isText ? value.toString('utf8') : JSON.parse(value.toString('utf8'))
  return value === undefined ? undefined : JSON.parse(JSON.stringify(value))
}

const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i
const BOOLEANS: Readonly<Record<string, boolean>> = { true: true, false: false, 1: true, 0: false }

/**
 * Copies values and converts each string to a number, boolean or list if the schema of its field allows no string. Empty
 * strings are left out, so that the default applies. A string that cannot be converted stays, and the schema refuses it.
 * @example coerceFields({ limit: '10', end: '' }, { limit: { type: 'integer' } }) → { limit: 10 }
 */
function coerceFields(values: Readonly<Record<string, unknown>>, fields: Fields): Record<string, unknown> {
  const filled = Object.entries(values).filter(([, value]) => value !== '' && value !== undefined)
  return Object.fromEntries(
    filled.map(([name, value]) => [
      name,
      Object.hasOwn(fields, name) ? coerce(value, fields[name] as JsonSchema) : value,
    ]),
  )
}

function coerce(value: unknown, schema: JsonSchema): unknown {
  const types = typesOf(schema)
  if (types.has('array') && (Array.isArray(value) || !types.has('string'))) {
    const items = (schema['items'] ?? {}) as JsonSchema
    return [value].flat().map((item: unknown) => coerce(item, items))
  }
  if (typeof value !== 'string' || types.size === 0 || types.has('string')) return value
  if ((types.has('integer') || types.has('number')) && NUMBER.test(value) && Number.isFinite(Number(value)))
    return Number(value)
  if (types.has('boolean') && Object.hasOwn(BOOLEANS, value)) return BOOLEANS[value]
  return value
}

/** Lists the JSON types that a schema allows. Empty if it does not name any. */
function typesOf(schema: JsonSchema): ReadonlySet<string> {
  if (schema['type'] !== undefined) return new Set([schema['type']].flat() as string[])
  const values = Array.isArray(schema['enum']) ? schema['enum'] : 'const' in schema ? [schema['const']] : []
  const branches = ['anyOf', 'oneOf', 'allOf'].flatMap((word) => (schema[word] ?? []) as JsonSchema[])
  return new Set([...values.map(typeOf), ...branches.flatMap((branch) => [...typesOf(branch)])])
}

function typeOf(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'array' : typeof value
}
