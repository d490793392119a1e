/**
 * Relevance of an item to markets, and everything else that is derived from its text. Each rule of the score has a reason:
 * 0.30 source + 0.35 topic + 0.15 kind + 0.10 novelty + 0.10 corroboration − penalties, clamped to 0..1. The weights are
 * a judgement and are not fitted to prices: two public studies disagree on whether such posts move markets at all.
 */
import { LRUCache } from 'lru-cache'
import type { Item, Source } from '../sources/source.ts'
import { recogniseEntities, type Mention } from './entity-recognition.ts'
import { type Asset, matchAssets, isCeremonial, kindWeight, matchTopics, topicWeight } from './topics.ts'

/** The part of the score that depends on the item alone. It is stored with each revision. */
export interface Grounds {
  readonly score: number
  readonly reasons: readonly string[]
}

export interface Relevance {
  readonly score: number
  readonly band: 'high' | 'medium' | 'low'
  readonly reasons: readonly string[]
}

const SOURCE = { principal: 1, mirror: 0.9, agency: 0.7 } as const
const WEIGHTS = { source: 0.3, topic: 0.35, kind: 0.15, novelty: 0.1, corroboration: 0.1 } as const
const CEREMONIAL = 0.3
const NO_TEXT = 0.2
const DAY_PRECISION = 0.05

/** Scores everything but novelty and corroboration, which depend on other records. */
export function relevanceGrounds(
  item: Item,
  source: Source,
  topics = matchTopics(`${item.title ?? ''}\n${item.text}`),
): Grounds {
  const [strongest] = topics
  const parts: [number, string][] = [[WEIGHTS.source * SOURCE[source.role], `source:${source.role}`]]
  if (strongest !== undefined) parts.push([WEIGHTS.topic * topicWeight(strongest), `topic:${strongest}`])
  parts.push([WEIGHTS.kind * kindWeight(item.kind), `kind:${item.kind}`])
  if (isCeremonial(item.title, item.text)) parts.push([-CEREMONIAL, 'penalty:ceremonial'])
  if (item.kind === 'social.link' || item.kind === 'social.media') parts.push([-NO_TEXT, 'penalty:no_text'])
  if (item.precision === 'day') parts.push([-DAY_PRECISION, 'penalty:day_precision'])
  return { score: parts.reduce((sum, [part]) => sum + part, 0), reasons: parts.map(([, reason]) => reason) }
}

/**
 * The full score as it was known at a moment. `leads`: the record was the first of its cluster. `corroborated`: an
 * independent source had confirmed it.
 */
export function finalRelevance({ score, reasons }: Grounds, leads: boolean, corroborated: boolean): Relevance {
  const whole = score + (leads ? WEIGHTS.novelty : 0) + (corroborated ? WEIGHTS.corroboration : 0)
  const clamped = Math.round(Math.min(1, Math.max(0, whole)) * 100) / 100
  return {
    score: clamped,
    band: clamped >= 0.6 ? 'high' : clamped >= 0.35 ? 'medium' : 'low',
    reasons: [...reasons, ...(leads ? ['novel'] : []), ...(corroborated ? ['corroborated'] : [])],
  }
}

/** What is derived from a text, once per revision. */
export interface Annotations {
  readonly topics: readonly string[]
  readonly entities: readonly Mention[]
  readonly assets: readonly Asset[]
  readonly grounds: Grounds
}

/** The title on a line of its own, then the text. */
export function fullText({ title, text }: Pick<Item, 'title' | 'text'>): string {
  return [title ?? '', text].filter(Boolean).join('\n')
}

/** The entities of the texts of late, at most so many characters: several sources carry the same text. */
const recognised = new LRUCache<string, readonly Mention[]>({
  maxSize: 1_000_000,
  sizeCalculation: (_, words) => words.length + 1,
})

function entitiesOf(words: string): readonly Mention[] {
  const known = recognised.get(words)
  if (known) return known
  const entities = recogniseEntities(words)
  recognised.set(words, entities)
  return entities
}

/** Finds topics, entities and assets of an item, and scores it. Takes milliseconds to tens of milliseconds. */
export function annotate(item: Item, source: Source): Annotations {
  const words = fullText(item)
  const topics = matchTopics(words)
  const entities = entitiesOf(words)
  const assets = matchAssets(words, topics, new Set(entities.map(({ id }) => id)))
  return { topics, entities, assets, grounds: relevanceGrounds(item, source, topics) }
}
