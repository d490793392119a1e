/** Invented news of the offices that the POTUS feeds read. What each has published until a moment follows from a seed. */
import { unit } from '../scripted-market.ts'

/** Who publishes. */
export type Desk =
  'white_house' | 'posts' | 'register' | 'federal_reserve' | 'state' | 'treasury' | 'war' | 'justice' | 'govinfo'

export interface NewsItem {
  readonly desk: Desk
  /** Unique within the desk. Of a post: its id on the platform, which contains its time. */
  readonly key: string
  readonly title: string
  readonly text: string
  /** Epoch milliseconds. */
  readonly at: number
  /** Folder of its address at the White House. */
  readonly section: Section
}

/** Sections of the White House's site; each has a feed of its own. */
export const SECTIONS = ['releases', 'briefings-statements', 'fact-sheets', 'presidential-actions'] as const
export type Section = (typeof SECTIONS)[number]

interface Rhythm {
  /** One item at most in each slot of this length. */
  readonly slotMs: number
  /** Share of slots with an item. */
  readonly share: number
  /** Epoch milliseconds of the first item. */
  readonly since: number
}

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const INAUGURATION = Date.UTC(2025, 0, 20, 17)
const RHYTHMS: Readonly<Record<Desk, Rhythm>> = {
  white_house: { slotMs: 50 * MINUTE, share: 0.45, since: INAUGURATION },
  posts: { slotMs: 68 * MINUTE, share: 1, since: Date.UTC(2022, 1, 14) },
  register: { slotMs: 12 * HOUR, share: 0.7, since: INAUGURATION },
  federal_reserve: { slotMs: 12 * HOUR, share: 0.8, since: INAUGURATION },
  state: { slotMs: 2 * HOUR, share: 0.9, since: INAUGURATION },
  treasury: { slotMs: 12 * HOUR, share: 0.9, since: INAUGURATION },
  war: { slotMs: 12 * HOUR, share: 0.9, since: INAUGURATION },
  justice: { slotMs: 6 * HOUR, share: 0.9, since: INAUGURATION },
  govinfo: { slotMs: 24 * HOUR, share: 0.9, since: INAUGURATION },
}

const SENTENCES = [
  'We will put a tariff on steel and aluminium from China.',
  'The Federal Reserve should lower interest rates, and soon.',
  'I spoke with the Prime Minister of Japan about trade.',
  'Our great farmers in Iowa have waited long enough.',
  'Oil is down, gasoline is down, and groceries follow.',
  'The Secretary of State is on the way to Geneva.',
  'A new order on digital assets is ready to be signed.',
  'Congress must pass the budget before Friday.',
  'Ukraine and Russia have agreed to talk again.',
  'We are opening more land in Alaska for energy.',
  'The court has ruled, and we respect the ruling.',
  'Thank you to everybody who came out in Ohio today.',
  'Drug prices fall again under the agreement with the companies.',
  'The border is the most secure it has ever been.',
  'Semiconductors will be made in Arizona, not abroad.',
  'We have nominated a new chair of the commission.',
]

export interface ScriptedNews {
  /** The newest items of a desk at a moment (epoch milliseconds), newest first. */
  newest(desk: Desk, at: number, count: number, skip?: number): readonly NewsItem[]
  /** Items that a desk published in [from, to), epoch milliseconds, oldest first. */
  between(desk: Desk, from: number, to: number): readonly NewsItem[]
  /** Publishes an item beside the invented ones. Returns its key. */
  publish(desk: Desk, item: { readonly at: number; readonly title?: string; readonly text: string }): string
  /** Takes an item off every listing. */
  remove(desk: Desk, key: string): void
  /** Replaces the text of an item. */
  edit(desk: Desk, key: string, text: string): void
}

/**
 * Creates the news. The same seed gives the same items on every machine.
 * @param since Nothing was published before, epoch milliseconds; by default since each desk began.
 */
export function createNews(seed = 'tollgate', since = 0): ScriptedNews {
  const removed = new Set<string>()
  const edited = new Map<string, string>()
  const published: NewsItem[] = []

  const known = new Map<Desk, Map<number, NewsItem | null>>()

  /** The item of a slot, as it was published; null if the slot has none. */
  function invented(desk: Desk, slot: number): NewsItem | null {
    const slots = known.get(desk) ?? new Map<number, NewsItem | null>()
    known.set(desk, slots)
    const item = slots.get(slot)
    if (item !== undefined) return item
    const made = invent(desk, slot)
    slots.set(slot, made)
    return made
  }

  function invent(desk: Desk, slot: number): NewsItem | null {
    const { slotMs, share, since: begun } = RHYTHMS[desk]
    const name = `${seed}/${desk}`
    if (unit(name, slot, 0) >= share) return null
    const at = Math.floor((slot + unit(name, slot, 1)) * slotMs)
    if (at < Math.max(begun, since)) return null
    const sentence = (k: number): string => SENTENCES[Math.floor(unit(name, slot, k) * SENTENCES.length)]!
    const mark = 100 + Math.floor(unit(name, slot, 7) * 99_899)
    const text = `${sentence(2)} ${sentence(3)} ${sentence(4)} It concerns ${mark} people in ${1 + (slot % 49)} places.`
    return itemOf(desk, slot, at, `${sentence(2).replace(/\.$/, '')} (${mark})`, text)
  }

  function itemOf(desk: Desk, number: number, at: number, title: string, text: string): NewsItem {
    const section = SECTIONS[Math.floor(unit(`${seed}/section`, number, 1) * SECTIONS.length)]!
    const day = new Date(at).toISOString().slice(0, 4)
    const key =
      desk === 'posts'
        ? String((BigInt(at) << 16n) + BigInt(Math.abs(number) % 60_000))
        : desk === 'register'
          ? `${day}-${String(Math.abs(number) % 100_000).padStart(5, '0')}`
          : String(Math.abs(number))
    return { desk, key, title, text, at, section }
  }

  const shown = (item: NewsItem): NewsItem | null => {
    const name = `${item.desk}/${item.key}`
    if (removed.has(name)) return null
    return { ...item, text: edited.get(name) ?? item.text }
  }

  function between(desk: Desk, from: number, to: number): NewsItem[] {
    const { slotMs, since: begun } = RHYTHMS[desk]
    const found = published.filter((item) => item.desk === desk && item.at >= from && item.at < to)
    for (let slot = Math.floor(Math.max(from, begun, since) / slotMs); slot * slotMs < to; slot += 1) {
      const item = invented(desk, slot)
      if (item && item.at >= from && item.at < to) found.push(item)
    }
    return found.flatMap((item) => shown(item) ?? []).toSorted((a, b) => a.at - b.at)
  }

  return {
    between,
    newest(desk, at, count, skip = 0) {
      const { slotMs, share, since: begun } = RHYTHMS[desk]
      const wanted = count + skip
      // Far enough back for the wanted number, and further while there are too few.
      for (let span = (wanted / share + 4) * slotMs; ; span *= 2) {
        const found = between(desk, at - span, at + 1)
        if (found.length >= wanted || at - span < Math.max(begun, since)) return found.toReversed().slice(skip, wanted)
      }
    },
    publish(desk, { at, title = 'A release of the test', text }) {
      const item = itemOf(desk, 50_000_000 + published.length, at, title, text)
      published.push(item)
      return item.key
    },
    remove: (desk, key) => void removed.add(`${desk}/${key}`),
    edit: (desk, key, text) => void edited.set(`${desk}/${key}`, text),
  }
}
