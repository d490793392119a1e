/** Finds priced operations that are sold whatever their data are, though their product could say. `npm run check` warns of them. */
import { type Issue, pointerOf } from '../validation/issue.ts'
import type { Edition } from './edition.ts'

/**
 * Lists the priced operations without `fresh` whose product reports how fresh its data are: their author may have forgotten
 * it. `"fresh": false` says that an operation needs no data.
 */
export function freshWarnings({ catalog, bound }: Pick<Edition, 'catalog' | 'bound'>): Issue[] {
  return catalog.products.flatMap(({ file, operations }) =>
    operations.flatMap(({ id, price, fresh, retired }): Issue[] => {
      if (price === null || fresh !== null || retired || !bound.get(id)?.freshness) return []
      const message = `${id} is sold however old its data are, though its product reports that. Write when it is sold, such as "fresh": { "newest_seconds": 3600 }, or "fresh": false if its answers rest on the request alone.`
      return [{ file, pointer: pointerOf('operations', id), rule: 'fresh', message }]
    }),
  )
}
