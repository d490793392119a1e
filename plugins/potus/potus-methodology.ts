/** How the feed is made, for the methodology page. */
import { readFileSync } from 'node:fs'
import type { Method } from '../../schemas/types.d.ts'
import { GAZETTEER_SOURCES, GAZETTEER_VERSION } from './entities/gazetteer.ts'
import { SOURCES_VERSION } from './sources/source.ts'
import { LEXICON_VERSION, TOPICS, topicWeight } from './entities/topics.ts'

/** Written by scripts/bench/potus.ts --write. */
const measured = JSON.parse(readFileSync(new URL('data/measured.json', import.meta.url), 'utf8')) as NonNullable<
  Method['tables']
>

const paragraphs = [
  'Sources are asked at their own pace, with validators sent by hand, one request a host at a time. A body that is not the feed (a page with status 200, half a file, a date ahead of us) is kept aside: /v1/potus/feeds says so and nothing is published. A body that differs only in its build date is no news.',
  'Every record has four clocks: when it happened, what the source claims, when we first held it, and when it could be served. Windows, gates and cursors go by the last one, so history is not rewritten by a late or back-dated item. What may change later (text, status, cluster, counts) says from when it was known, and an answer as of a moment holds nothing newer in any field.',
  'A text that was not seen before under the same key is a revision; one that comes back is none. A text of more than 400 characters that shrinks below a fifth is held back until two more polls agree. An item that is newer than the oldest of its feed and missing from three good polls is retracted: its last text is kept. Each record carries the hash of the record its source had before.',
  'Near duplicates share a cluster: one post, or one paper by its number, seen in two places; a White House page and the Federal Register’s document of the same title signed within three days (on public inspection, where the list does not tell, filed); texts whose sets of three-word shingles overlap by four fifths within a week.',
  'Names come from a gazetteer of facts first, longest name first and case sensitive; then from forms that tell what they are (a county, a university, a committee); then from a grammar, which is believed where a given name begins the name. What stands around a name may make it part of another (Palm Beach County, the USS George Washington) and it is left out then. Symbols are never matched by pattern. Topics come from a lexicon, assets from rules over topics and entities. All three are data files with a version.',
]

const formulas = [
  {
    name: 'Relevance',
    formula: '0.30 source + 0.35 topic + 0.15 kind + 0.10 novelty + 0.10 corroboration - penalties, between 0 and 1',
  },
  { name: 'Penalties', formula: '0.30 ceremonial; 0.20 link or media without words; 0.05 dated by the day' },
  { name: 'Near duplicate', formula: '|A ∩ B| / |A ∪ B| ≥ 0.8 over three-word shingles', source: 'Broder (1997)' },
  { name: 'Time of a post', formula: 'id >> 16, in milliseconds since 1970', source: 'Mastodon snowflake ids' },
]

/** common.json#/$defs/Method */
export function feedMethod(): Method {
  return {
    model: `potus/1, sources ${SOURCES_VERSION}, gazetteer ${GAZETTEER_VERSION}, lexicon ${LEXICON_VERSION}`,
    paragraphs,
    formulas,
    tables: [
      ...measured,
      {
        caption: 'Topics and their weights in relevance: a judgement, not a measurement',
        columns: ['topic', 'weight'],
        rows: TOPICS.map((topic) => [topic, topicWeight(topic)]),
      },
    ],
    limits: [
      'Relevance says how much an item concerns markets, never a direction. Its weights are not fitted to prices: two public studies disagree on whether such posts move markets at all.',
      'Names were labelled by one person, on five sets in turn; rules were refined after each. When first tried, the first four sets gave a precision of 0.90 to 0.94, the last one 0.983 with a recall of 0.901.',
      'How late the mirror of posts and the White House feed are at the moment of posting is not known before it is measured online; lag_p50_s says what it is.',
      'Sources marked unverified were never tried on a recorded payload and are off.',
      'Posts belong to their author; name the source that a record names.',
    ],
    sources: [
      ...GAZETTEER_SOURCES,
      'Broder, On the resemblance and containment of documents, Proc. Compression and Complexity of Sequences (1997)',
      'Graham, Harrington and Chorazy (2026), and Friederichs (2026): replication packages on posts and markets',
    ],
  }
}
