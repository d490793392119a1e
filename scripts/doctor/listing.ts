/** What a service says of itself in its documents, brought into one form. */
import { type Fields, fieldsOf, itemsOf } from './wire.ts'

export interface Listed {
  readonly id: string
  readonly method: string
  /** "/v1/x/gold/{day}". */
  readonly path: string
  /** "GET /v1/x/gold/*". */
  readonly route: string
  /** Address below the base that can be called as it stands; null where an example is missing. */
  readonly address: string | null
  /** Atomic units; null where it is free. */
  readonly price: string | null
  readonly tool: string | null
  readonly operation: Fields
}

const METHODS = ['get', 'post', 'put', 'patch', 'delete']

/** The operations of an OpenAPI document, in order. */
export function operationsOf(openapi: unknown): Listed[] {
  return Object.entries(fieldsOf(fieldsOf(openapi)['paths'])).flatMap(([path, methods]) =>
    METHODS.flatMap((verb): Listed[] => {
      const operation = fieldsOf(fieldsOf(methods)[verb])
      if (Object.keys(operation).length === 0) return []
      const method = verb.toUpperCase()
      const { 'x-payment-info': payment, 'x-mcp-tool': tool } = operation
      const [offer] = itemsOf(fieldsOf(payment)['offers'])
      return [
        {
          id: String(operation['operationId']),
          method,
          path,
          route: `${method} ${path.replace(/\{[^}]+\}/g, '*')}`,
          address: addressOf(path, operation),
          price: payment === undefined ? null : String(offer?.['amount']),
          tool: typeof tool === 'string' ? tool : null,
          operation,
        },
      ]
    }),
  )
}

function addressOf(path: string, operation: Fields): string | null {
  const examples = new Map(itemsOf(operation['parameters']).map(({ name, example }) => [name, example]))
  const filled = path.replace(/\{([^}]+)\}/g, (braces, name: string) => {
    const example = examples.get(name)
    return typeof example === 'string' || typeof example === 'number' ? encodeURIComponent(example) : braces
  })
  return filled.includes('{') ? null : filled
}

/** "0.005" and "$0.005" and 0.005 are "5000". */
export function atomic(dollars: unknown): string {
  const text = typeof dollars === 'number' ? dollars.toFixed(6) : String(dollars).replace(/^\$/, '')
  const [whole = '', fraction = ''] = text.split('.')
  return /^\d+$/.test(whole) && /^\d{0,6}0*$/.test(fraction)
    ? String(BigInt(whole + fraction.slice(0, 6).padEnd(6, '0')))
    : text
}

/** Prices by route as a document writes them, in atomic units. */
export function pricesOf(list: unknown): ReadonlyMap<string, string> {
  return new Map(Object.entries(fieldsOf(list)).map(([route, price]) => [route, atomic(price)]))
}

/** Prices by route in an llms.txt: `- [GET /v1/a](...): $0.005. Words.` */
export function pricesInText(text: string): ReadonlyMap<string, string> {
  return new Map(
    [...text.matchAll(/^- \[([A-Z]+ \/[^\]]*)\]\([^)]*\): \$([\d.]*\d)/gm)].map((match) => [
      match[1] as string,
      atomic(match[2]),
    ]),
  )
}
