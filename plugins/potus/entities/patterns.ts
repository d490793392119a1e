/** Names that tell by their form what they are: counties, universities, committees, courts of the states. */
import { type EntityType, facts, slugOf } from './facts.ts'

export interface Named {
  readonly id: string
  readonly type: EntityType
  readonly name: string
  readonly start: number
  readonly end: number
  /** What is named inside counts as well: the state in "Ohio Supreme Court". */
  readonly isOpen: boolean
}

const CAPITAL = "\\p{Lu}[\\p{L}’'-]+"
const STATES = facts.entries.filter(({ id }) => id.startsWith('place:US-')).map(({ name }) => name)
const FIRST =
  'Palm|Los|San|Santa|Prince|Salt|Contra|El|St\\.|New|Fort|La|Las|Du|De|Le|Van|Anne|Rio|Cape|Grand|Jim|Fond du'
const MIDDLE =
  'State|International|Tech|Christian|Methodist|Mason|Washington|Forest|Hopkins|Mellon|A&M|Atlantic|Southern'

interface Form {
  readonly type: EntityType
  readonly pattern: RegExp
  readonly isOpen?: boolean
  /** First words that make it no name. */
  readonly not?: RegExp
}

const FORMS: readonly Form[] = [
  {
    type: 'place',
    pattern: new RegExp(`\\b(?:(?:${FIRST}) )?${CAPITAL} County\\b`, 'gu'),
    not: /^(?:The|Every|Each|All|Our|This|That|My|Rural|Local|Former|State|Single|Red|Blue|Swing|Bellwether|American) /,
  },
  {
    type: 'organization',
    pattern: new RegExp(
      `\\b(?:University|College) of (?:the )?(?:(?:North|South|West|New|Southern|Northern|Notre|Rhode|St\\.) )?${CAPITAL}`,
      'gu',
    ),
  },
  {
    type: 'organization',
    pattern: new RegExp(
      `\\b(?:${CAPITAL} (?=(?:${MIDDLE}) ))?(?:[\\p{Lu}&]+|${CAPITAL}) (?:University|College)\\b(?! (?:of|Professor|Teaching|Admission|Campus|Tour|Student))`,
      'gu',
    ),
    not: /^(?:The|A|Electoral|Community|Great|My|Our|State|American|Every|First|Private|Public|Major|Top|Elite|For-Profit) /,
  },
  {
    type: 'organization',
    pattern: new RegExp(
      `\\b(?:House|Senate) (?:(?:${CAPITAL}|and|&|on|the) ){1,6}?(?:Subcommittee|Committee|Caucus)\\b`,
      'gu',
    ),
  },
  {
    type: 'organization',
    pattern: new RegExp(
      `\\b(?:House|Senate) Committee on (?:the )?${CAPITAL}(?:(?:,| and|, and| &) ${CAPITAL}| ${CAPITAL})*`,
      'gu',
    ),
  },
  {
    type: 'organization',
    pattern: new RegExp(
      `\\bCourt of Appeals for the (?:${CAPITAL} |D\\.C\\. )+Circuit|\\bDistrict Court for the (?:${CAPITAL} )?District of (?:(?:New|North|South|West|Rhode) )?${CAPITAL}`,
      'gu',
    ),
    isOpen: true,
  },
  {
    type: 'organization',
    pattern: new RegExp(
      `\\b(?:${STATES.join('|')}) (?:State )?(?:Senate|House of Representatives|Supreme Court|Legislature|General Assembly|National Guard)\\b(?! (?:Seat|District|Race))`,
      'gu',
    ),
    isOpen: true,
  },
]

/** Every such name, in the order of the forms; a later one that overlaps an earlier one is left out. */
export function namedByForm(text: string): Named[] {
  const found: Named[] = []
  for (const { type, pattern, isOpen = false, not } of FORMS)
    for (const { 0: match, index: start } of text.matchAll(pattern)) {
      const name = match.replace(/[’']s$/, '')
      const end = start + name.length
      if (not?.test(name) || found.some((other) => other.start < end && start < other.end)) continue
      const id = `${type === 'place' ? 'place' : 'org'}:${slugOf(name.replace(/&/g, 'and'))}`
      found.push({ id, type, name, start, end, isOpen })
    }
  return found
}
