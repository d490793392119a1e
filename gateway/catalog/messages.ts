/** What Ajv found, said in sentences, with a stable word for each rule. One voice for 422s and catalog mistakes. */
import type { ErrorObject } from 'ajv'

export interface Said {
  /** Steps from the checked value to the mistake; array positions are numbers. */
  readonly steps: readonly (string | number)[]
  readonly msg: string
  /** Stable: missing, int_parsing, enum, less_than_equal, extra_forbidden, ... */
  readonly type: string
  readonly input: unknown
  readonly ctx?: Readonly<Record<string, unknown>>
  /** The JSON Schema keyword. */
  readonly rule: string
  /** The schema that was broken, where Ajv ran verbosely. */
  readonly schema: unknown
}

type Phrase = readonly [type: string, msg: string, ctx?: Readonly<Record<string, unknown>>]

const TYPES: Readonly<Record<string, readonly [parsing: string, type: string, phrase: string]>> = {
  integer: ['int_parsing', 'int_type', 'an integer'],
  number: ['float_parsing', 'float_type', 'a number'],
  boolean: ['bool_parsing', 'bool_type', 'true or false'],
  string: ['string_type', 'string_type', 'a string'],
  array: ['list_type', 'list_type', 'a list'],
  object: ['object_type', 'object_type', 'an object'],
  null: ['null_type', 'null_type', 'null'],
}

const FORMATS: Readonly<Record<string, Phrase>> = {
  'date-time': ['datetime_parsing', 'Must be a time in ISO 8601 with a zone, e.g. 2026-02-01T00:00:00Z.'],
  date: ['date_parsing', 'Must be a date, e.g. 2026-02-01.'],
  time: ['time_parsing', 'Must be a time of day in ISO 8601.'],
  email: ['email', 'Must be an e-mail address.'],
  uuid: ['uuid_parsing', 'Must be a UUID.'],
  uri: ['url_parsing', 'Must be an absolute URL.'],
}

/** The sentences of a failed validation, branches of a choice folded into one. */
export function sentences(errors: readonly ErrorObject[]): Said[] {
  return folded(errors).map((error) => {
    const [type, msg, ctx] = phraseOf(error, errors)
    const { params, instancePath } = error
    const beneath = (params['missingProperty'] ?? extraName(error) ?? error.propertyName) as string | undefined
    const steps = instancePath
      .split('/')
      .slice(1)
      .map((step) => (/^\d+$/.test(step) ? Number(step) : step.replaceAll('~1', '/').replaceAll('~0', '~')))
    return {
      steps: beneath === undefined ? steps : [...steps, beneath],
      msg,
      type,
      input: inputOf(error),
      ...(ctx ? { ctx } : {}),
      rule: error.keyword,
      schema: error.parentSchema,
    }
  })
}

/** Drops the branches of a failed anyOf or oneOf, which says it all, and the frame around a failed `if`. */
function folded(errors: readonly ErrorObject[]): ErrorObject[] {
  const choices = errors.filter(isChoice)
  return errors.filter(
    (error) =>
      !['if', 'propertyNames'].includes(error.keyword) &&
      !choices.some((choice) => choice !== error && isBranch(error, choice, errors)),
  )
}

const isChoice = ({ keyword }: ErrorObject): boolean => keyword === 'anyOf' || keyword === 'oneOf'

function isBranch(error: ErrorObject, choice: ErrorObject, errors: readonly ErrorObject[]): boolean {
  if (errors.indexOf(error) > errors.indexOf(choice) || !error.instancePath.startsWith(choice.instancePath))
    return false
  if (error.schemaPath.startsWith(`${choice.schemaPath}/`)) return true
  return error.schemaPath.split('#')[0] !== choice.schemaPath.split('#')[0]
}

function extraName({ params, keyword }: ErrorObject): string | undefined {
  if (keyword === 'additionalProperties') return params['additionalProperty'] as string
  return keyword === 'unevaluatedProperties' ? (params['unevaluatedProperty'] as string) : undefined
}

function inputOf(error: ErrorObject): unknown {
  const extra = extraName(error)
  return extra === undefined ? error.data : (error.data as Record<string, unknown> | undefined)?.[extra]
}

function phraseOf(error: ErrorObject, errors: readonly ErrorObject[]): Phrase {
  const { keyword, params, data } = error
  const limit = params['limit'] as number
  const plural = (noun: string): string => (limit === 1 ? noun : `${noun}s`)
  switch (keyword) {
    case 'required':
    case 'dependentRequired':
      return ['missing', 'Is required.']
    case 'additionalProperties':
    case 'unevaluatedProperties':
      return ['extra_forbidden', `Is not known here; remove it.${known(error)}`]
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
      return ['string_pattern_mismatch', `Must match ${params['pattern']}.`, { pattern: params['pattern'] }]
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
      return ['file_type', 'Must be a file.']
    case 'anyOf':
    case 'oneOf':
      return ['union', choiceOf(error, errors)]
    default:
      return [keyword.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), `Breaks the rule ${keyword}.`]
  }
}

function wrongType(type: string | readonly string[], data: unknown): Phrase {
  const types = [type].flat().flatMap((one) => TYPES[one] ?? [])
  const names = [type].flat().map((one) => TYPES[one]?.[2] ?? one)
  const isNarrow = Array.isArray(data) && ![type].flat().includes('array')
  const word = [type].flat().map((one) => TYPES[one]?.[typeof data === 'string' ? 0 : 1])[0] ?? types[0] ?? 'type'
  return [word, `Must be ${names.join(' or ')}${isNarrow ? ', given once' : ''}.`]
}

/** What each branch wants, joined; the branches' own sentences are dropped from the list. */
function choiceOf(choice: ErrorObject, errors: readonly ErrorObject[]): string {
  if (choice.keyword === 'oneOf' && choice.params['passingSchemas'])
    return 'Matches more than one of the allowed forms; write exactly one.'
  const branches = errors.filter(
    (error) => !isChoice(error) && error.instancePath === choice.instancePath && isBranch(error, choice, errors),
  )
  const wants = branches.map((branch) => phraseOf(branch, [])[1].replace(/^Must be |\.$/g, ''))
  return wants.length === 0 ? 'Matches none of the allowed forms.' : `Must be ${[...new Set(wants)].join(', or ')}.`
}

function known({ parentSchema }: ErrorObject): string {
  const names = Object.keys((parentSchema?.['properties'] as object | undefined) ?? {}).filter(
    (name) => !name.startsWith('$'),
  )
  return names.length === 0 ? '' : ` Known: ${names.join(', ')}.`
}

const shown = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))
