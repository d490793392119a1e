/** The form that makes a request to an operation: a control for each parameter and each field of the body. */
import type { Content, OpenApiOperation, Schema } from './openapi-types.ts'
import { type Field, fieldOf, type Schemas, wholeOf } from './schema-fields.ts'

/** A control of the form. `views/assets/call.js` reads its value by `part` and `type`. */
export interface Control extends Field {
  readonly id: string
  readonly part: 'path' | 'query' | 'body'
  /** How the text becomes a value. `whole` is the body itself and not a field of it. */
  readonly value: 'text' | 'number' | 'boolean' | 'json'
  readonly isWhole: boolean
  /** True if the content may be chosen as a file. */
  readonly isFile: boolean
  /** The choices of a select, as they are sent; null for any other control. */
  readonly options: readonly string[] | null
  readonly min: number | null
  readonly max: number | null
  readonly step: string | null
  readonly maxLength: number | null
  /** What the example fills in; "" if nothing. */
  readonly filled: string
  readonly placeholder: string
}

export interface OperationForm {
  /** Media types that the body may have. */
  readonly media: readonly string[]
  /** Controls that a call needs or the example uses. */
  readonly controls: readonly Control[]
  /** The others. */
  readonly more: readonly Control[]
}

const RAW = /json$|^multipart\/|form-urlencoded$/

/** Returns the form of an operation, filled with the example. Parameters that are being replaced have no control. */
export function formOf(
  { operationId, parameters = [], requestBody }: OpenApiOperation,
  schemas: Schemas,
): OperationForm {
  const content = requestBody?.required ? requestBody.content : {}
  const outside = parameters
    .filter(({ deprecated }) => deprecated !== true)
    .map(({ name, in: part, required, schema, example }) =>
      controlOf(schema, { name, part: part as 'path' | 'query', required, example }, schemas),
    )
  const all = [...outside, ...bodyControls(content, schemas)].map((control) => ({
    ...control,
    id: `${operationId}-${control.part}-${control.name}`,
  }))
  const isNeeded = ({ required, filled, isFile }: Control): boolean => required || filled !== '' || isFile
  return {
    media: Object.keys(content),
    controls: all.filter(isNeeded),
    more: all.filter((control) => !isNeeded(control)),
  }
}

function bodyControls(content: Content, schemas: Schemas): readonly Control[] {
  const [[media, main] = ['', undefined], ...others] = Object.entries(content)
  if (main === undefined) return []
  const { properties = {}, required = [] } = RAW.test(media) ? wholeOf(main.schema, schemas) : {}
  const example = main.example
  if (Object.keys(properties).length === 0) {
    const given = { name: 'body', part: 'body', required: true, example } as const
    const control = controlOf(main.schema, given, schemas)
    const isJson = media.endsWith('json')
    return [
      { ...control, value: isJson ? 'json' : 'text', isWhole: true, isFile: !isJson, filled: written(example, isJson) },
    ]
  }
  // In JSON a file is text; the schema of a form says which fields are files.
  const forms = [main, ...others.map(([, other]) => other)].map(
    ({ schema }) => wholeOf(schema, schemas).properties ?? {},
  )
  const isFile = (name: string): boolean =>
    forms.some((fields) => fields[name] !== undefined && wholeOf(fields[name], schemas).format === 'binary')
  return Object.entries(properties)
    .filter(([, schema]) => wholeOf(schema, schemas).deprecated !== true)
    .map(([name, schema]) => {
      const given = {
        name,
        part: 'body',
        required: required.includes(name),
        example: exampleField(example, name),
      } as const
      return { ...controlOf(schema, given, schemas), isFile: isFile(name) }
    })
}

function exampleField(example: unknown, name: string): unknown {
  return typeof example === 'object' && example !== null ? (example as Record<string, unknown>)[name] : undefined
}

interface Given extends Pick<Control, 'name' | 'part' | 'required'> {
  readonly example: unknown
}

function controlOf(schema: Schema, { name, part, required, example }: Given, schemas: Schemas): Control {
  const whole = wholeOf(schema, schemas)
  const value = valueOf(whole)
  const isNumber = value === 'number'
  const [shown] = whole.examples ?? []
  return {
    ...fieldOf(name, schema, required, schemas),
    id: '',
    part,
    value,
    isWhole: false,
    isFile: false,
    options: optionsOf(whole),
    min: isNumber ? (whole.minimum ?? whole.exclusiveMinimum ?? null) : null,
    max: isNumber ? (whole.maximum ?? null) : null,
    step: isNumber ? (typesOf(whole).includes('integer') ? '1' : 'any') : null,
    maxLength: whole.maxLength ?? null,
    filled: written(example, value === 'json'),
    placeholder: written(whole.default ?? shown, false),
  }
}

function typesOf({ type, oneOf, anyOf }: Schema): readonly string[] {
  const own = typeof type === 'string' ? [type] : (type ?? [])
  return [...own, ...[...(oneOf ?? []), ...(anyOf ?? [])].flatMap(typesOf)].filter((name) => name !== 'null')
}

/** A value that may be text is sent as text: the gateway reads numbers and lists from it. */
function valueOf(schema: Schema): Control['value'] {
  const types = typesOf(schema)
  const choices = schema.enum ?? (schema.const === undefined ? [] : [schema.const])
  if (types.includes('string') || choices.some((choice) => typeof choice === 'string')) return 'text'
  const kinds = types.length > 0 ? types : choices.map((choice) => typeof choice)
  if (kinds.length > 0 && kinds.every((kind) => kind === 'number' || kind === 'integer')) return 'number'
  if (kinds.length > 0 && kinds.every((kind) => kind === 'boolean')) return 'boolean'
  return 'json'
}

function optionsOf(schema: Schema): readonly string[] | null {
  if (schema.enum) return schema.enum.map((choice) => written(choice, false))
  return valueOf(schema) === 'boolean' ? ['true', 'false'] : null
}

function written(value: unknown, isJson: boolean): string {
  if (value === undefined || value === null) return ''
  if (isJson) return lines(value)
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** JSON with one line for each item of a list, so that rows stay readable. */
function lines(value: unknown): string {
  if (!Array.isArray(value)) return JSON.stringify(value, null, 2)
  return `[\n${value.map((item) => `  ${JSON.stringify(item)}`).join(',\n')}\n]`
}
