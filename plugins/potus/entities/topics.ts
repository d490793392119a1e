/** Topics from a lexicon and assets from rules. Both are in a data file with a version; nothing is learned. */
import { once } from 'tollgate/plugin'
import { readFileSync } from 'node:fs'
import type { Kind } from '../sources/source.ts'

interface AssetRule {
  readonly id: string
  /** Symbol of the asset in the market product, or null. */
  readonly symbol: string | null
  readonly topics: readonly string[]
  readonly entities?: readonly string[]
  readonly words?: readonly string[]
  readonly confidence: number
}

interface Lexicon {
  readonly version: string
  readonly topics: Readonly<Record<string, { readonly weight: number; readonly words: readonly string[] }>>
  readonly ceremonial: readonly string[]
  readonly principal_kinds: Readonly<Record<Kind, number>>
  readonly assets: readonly AssetRule[]
}

export interface Asset {
  readonly id: string
  readonly why: string
  readonly confidence: number
}

const lexicon = JSON.parse(readFileSync(new URL('../data/lexicon.json', import.meta.url), 'utf8')) as Lexicon

export const LEXICON_VERSION = lexicon.version
export const TOPICS: readonly string[] = Object.keys(lexicon.topics)

const COMPANY = 'company:'

/** The patterns of the lexicon. */
const patterns = once(() => ({
  topics: TOPICS.map((topic) => ({ topic, pattern: patternOf(lexicon.topics[topic]!.words) })),
  ceremonial: lexicon.ceremonial.map((source) => new RegExp(source, 'i')),
  rules: lexicon.assets.map((rule) => ({ ...rule, pattern: rule.words ? patternOf(rule.words) : null })),
}))

/**
 * A pattern for a list of words. Words match whole and in any case, abbreviations of up to four capitals exactly; `*`
 * stands for any ending.
 */
function patternOf(words: readonly string[]): RegExp {
  const escaped = (word: string): string => word.replace(/[.+?^${}()|[\]\\]/g, '\\$&').replace(/\*/g, '[\\p{L}\\p{N}]*')
  const isShort = (word: string): boolean => /^[A-Z0-9.]{2,4}$/.test(word)
  const either = (word: string): string =>
    isShort(word)
      ? escaped(word)
      : escaped(word).replace(/(?<!\\)\p{L}/gu, (letter, at: number, whole: string) =>
          whole.slice(Math.max(0, at - 2), at) === '\\p' || whole.slice(Math.max(0, at - 3), at) === '\\p{'
            ? letter
            : `[${letter.toLowerCase()}${letter.toUpperCase()}]`,
        )
  return new RegExp(`(?<![\\p{L}\\p{N}])(?:${words.map(either).join('|')})(?![\\p{L}\\p{N}])`, 'u')
}

/** Topics of a text, the one with the highest weight first. */
export function matchTopics(text: string): string[] {
  return patterns()
    .topics.filter(({ pattern }) => pattern.test(text))
    .map(({ topic }) => topic)
    .sort((a, b) => topicWeight(b) - topicWeight(a))
}

/** How much a topic concerns markets, 0 to 1. A judgement, not a measurement. */
export function topicWeight(topic: string): number {
  return lexicon.topics[topic]?.weight ?? 0
}

/** How much a kind of item concerns markets, 0 to 1. A judgement, not a measurement. */
export function kindWeight(kind: Kind): number {
  return lexicon.principal_kinds[kind]
}

/** Returns true for greetings and observances, which do not concern markets. */
export function isCeremonial(title: string | null, text: string): boolean {
  return patterns().ceremonial.some((pattern) => pattern.test(title ?? text))
}

/** Assets that topics and entities point to, each once with its highest confidence. It is not a direction. */
export function matchAssets(text: string, topics: readonly string[], entities: ReadonlySet<string>): Asset[] {
  const best = new Map<string, Asset>()
  for (const { id, topics: wanted, entities: named, pattern, confidence } of patterns().rules) {
    const topic = wanted.find((one) => topics.includes(one))
    if (topic === undefined) continue
    const entity = named?.find((one) => entities.has(one))
    if (named && entity === undefined) continue
    if (pattern && !pattern.test(text)) continue
    const why = `topic_rule:${topic}${entity ? `+${entity}` : ''}`
    if (confidence > (best.get(id)?.confidence ?? 0)) best.set(id, { id, why, confidence })
  }
  for (const entity of entities)
    if (entity.startsWith(COMPANY)) {
      const id = `eq:${entity.slice(COMPANY.length)}`
      best.set(id, { id, why: `entity:${entity}`, confidence: 0.7 })
    }
  return [...best.values()].sort((a, b) => b.confidence - a.confidence || (a.id < b.id ? -1 : 1))
}

/** Symbol of an asset in the market product; null if it has none. */
export function assetSymbol(asset: string): string | null {
  if (asset.startsWith('eq:')) return asset.slice(3)
  return lexicon.assets.find(({ id }) => id === asset)?.symbol ?? null
}
