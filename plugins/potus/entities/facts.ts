/** The file of facts that names are told by: who and what there is, and the words that stand around names. */
import { readFileSync } from 'node:fs'

export type EntityType = 'person' | 'organization' | 'place'

export interface Entry {
  readonly id: string
  readonly type: EntityType
  readonly name: string
  readonly forms?: readonly string[]
}

interface Gazetteer {
  readonly version: string
  readonly sources: readonly string[]
  readonly unscored: readonly string[]
  /** Short given names and the long ones they stand for. */
  readonly nicknames: Readonly<Record<string, string>>
  readonly context: Readonly<
    Record<
      'titles' | 'institutions' | 'borrowers' | 'teams' | 'common' | 'namesakes' | 'words_not_names',
      readonly string[]
    >
  >
  /** Other spellings of countries, by ISO 3166 code. */
  readonly countries: Readonly<Record<string, readonly string[]>>
  readonly entries: readonly Entry[]
}

export const facts = JSON.parse(readFileSync(new URL('../data/gazetteer.json', import.meta.url), 'utf8')) as Gazetteer

export const GAZETTEER_VERSION = facts.version
export const GAZETTEER_SOURCES = facts.sources
/** Present in nearly every text, so left out when precision and recall are measured. */
export const UNSCORED: ReadonlySet<string> = new Set(facts.unscored)

/**
 * A name as part of an identity.
 *
 * @example slugOf('María Elvira Salazar') // "maria-elvira-salazar"
 */
export function slugOf(name: string): string {
  return name
    .normalize('NFD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .replace(/[’']/g, '')
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '')
}
