/** What is worked out about a text, once per revision: topics, entities, assets, grounds of relevance. */
import { entitiesOf, type Mention } from '../entities/enrich.ts'
import type { Item } from '../item.ts'
import { groundsOf, type Grounds } from '../relevance.ts'
import type { Source } from '../sources/source.ts'
import { type Asset, assetsOf, topicsOf } from '../topics.ts'

export interface Description {
  readonly topics: readonly string[]
  readonly entities: readonly Mention[]
  readonly assets: readonly Asset[]
  readonly grounds: Grounds
}

/** Everything an item says: its title on a line of its own, then its text. */
export function wordsOf({ title, text }: Pick<Item, 'title' | 'text'>): string {
  return [title ?? '', text].filter(Boolean).join('\n')
}

export function describe(item: Item, source: Source): Description {
  const words = wordsOf(item)
  const topics = topicsOf(words)
  const entities = entitiesOf(words)
  const assets = assetsOf(words, topics, new Set(entities.map(({ id }) => id)))
  return { topics, entities, assets, grounds: groundsOf(item, source, topics) }
}
