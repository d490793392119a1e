/** Where a route can be paid: what it names must be among the networks payments are taken on. */
import { type Draft, strings } from './operation-drafts.ts'
import { type Issue, pointerOf } from '../validation/issue.ts'
import type { CatalogDocument } from './documents.ts'

/** A mistake for the service, and for each operation, whose networks are all of no use here. */
export function acceptsMistakes(
  service: CatalogDocument | undefined,
  drafts: readonly Draft[],
  taken: ReadonlySet<string> | undefined,
): Issue[] {
  if (!taken) return []
  const named = [
    ...(service ? [{ file: service.file, pointer: '', fields: service.content }] : []),
    ...drafts.flatMap(({ operations }) => operations),
  ]
  return named.flatMap(({ file, pointer, fields }) => {
    const accepts = strings(fields['accepts'])
    if (accepts.length === 0 || accepts.some((name) => taken.has(name))) return []
    const message = `Nothing is taken on ${accepts.join(' or ')}. Write a network of NETWORK: ${[...taken].join(', ')}.`
    return [{ file, pointer: pointer + pointerOf('accepts'), rule: 'accepts', message }]
  })
}
