/** Given names, as the grammar's lexicon knows them. */
import nlp from 'compromise'
import { facts } from './facts.ts'

const { lexicon } = (nlp.model() as { one: { lexicon: Readonly<Record<string, string | readonly string[]>> } }).one
const NAMES = new Set(['MaleName', 'FemaleName', 'FirstName'])
const WORDS = new Set(facts.context.words_not_names)

/** True for "Davy", "María" and "Mike"; false for words that are names only now and then, such as "Will". */
export function isGivenName(word: string): boolean {
  if (!/^\p{Lu}/u.test(word) || WORDS.has(word)) return false
  const plain = word.normalize('NFD').replace(/\p{M}/gu, '').toLowerCase()
  return word in facts.nicknames || [lexicon[plain] ?? []].flat().some((tag) => NAMES.has(tag))
}
