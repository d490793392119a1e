/** What is wrong in a catalog document or a schema: where, which rule, and what to write instead. */
export interface Mistake {
  /** Path inside the catalog folder ("x/gold.json"), or of a schema ("schemas/gold.json"). */
  readonly file: string
  /** JSON pointer (RFC 6901); empty for the whole document. */
  readonly pointer: string
  /** A JSON Schema keyword, or a word of our own: "route-taken", "uses-unknown", ... */
  readonly rule: string
  readonly message: string
}

/** The service or the plans cannot be read: no edition can be built. Carries the mistakes of all documents. */
export class CatalogError extends Error {
  readonly mistakes: readonly Mistake[]

  constructor(mistakes: readonly Mistake[]) {
    super(`The catalog cannot be used:\n${mistakes.map((one) => `  - ${lineOf(one)}`).join('\n')}`)
    this.name = 'CatalogError'
    this.mistakes = mistakes
  }
}

/** @example lineOf({ file: 'a.json', pointer: '/price', rule: 'pattern', message: 'Wrong.' }) → "a.json#/price Wrong." */
export function lineOf({ file, pointer, message }: Mistake): string {
  return `${file}${pointer === '' ? '' : `#${pointer}`} ${message}`
}

/** @example pointerOf('operations', 'a/b') → "/operations/a~1b" */
export function pointerOf(...steps: readonly (string | number)[]): string {
  return steps.map((step) => `/${String(step).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')
}

/** @example stepsOf("/operations/a~1b") → ["operations", "a/b"] */
export function stepsOf(pointer: string): string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
}
