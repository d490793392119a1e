/** Diagnostics: what is wrong in a catalog document or schema, where, and what to write instead. */
export interface Issue {
  /** Path inside the catalog folder ("x/gold.json"), or path of a schema ("schemas/gold.json"). */
  readonly file: string
  /** JSON pointer (RFC 6901); empty for the whole document. */
  readonly pointer: string
  /** A JSON Schema keyword, or an identifier of our own: "route-taken", "uses-unknown" and so on. */
  readonly rule: string
  readonly message: string
}

/** service.json, plans.json or networks.json is invalid, so no catalog can be built. Carries the issues of all documents. */
export class CatalogError extends Error {
  readonly issues: readonly Issue[]

  constructor(issues: readonly Issue[]) {
    super(`The catalog cannot be used:\n${issues.map((issue) => `  - ${lineOf(issue)}`).join('\n')}`)
    this.name = 'CatalogError'
    this.issues = issues
  }
}

/** Writes an issue as one line. @example lineOf({ file: 'a.json', pointer: '/price', rule: 'pattern', message: 'Wrong.' }) → "a.json#/price Wrong." */
export function lineOf({ file, pointer, message }: Issue): string {
  return `${file}${pointer === '' ? '' : `#${pointer}`} ${message}`
}

/** Writes a JSON pointer (RFC 6901). @example pointerOf('operations', 'a/b') → "/operations/a~1b" */
export function pointerOf(...steps: readonly (string | number)[]): string {
  return steps.map((step) => `/${String(step).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')
}

/** Reads the steps of a JSON pointer (RFC 6901). @example stepsOf("/operations/a~1b") → ["operations", "a/b"] */
export function stepsOf(pointer: string): string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
}
