import type { SkippedRows } from '../reading.ts'

type Kind = SkippedRows['kind']

interface Words {
  readonly kind: Kind
  /** Whether the words hold for rows with a price and a quantity too: funding has both, and so has a dividend in shares. */
  readonly isSure: boolean
  /** Whole types, separated by bars, in small letters with single spaces. */
  readonly whole: string
  /** How longer types begin. */
  readonly begin?: string
}

/** What the type of a row says if the row is no trade, in the words of brokers, exchanges and MetaTrader. */
const WORDS: readonly Words[] = [
  {
    kind: 'dividend',
    isSure: true,
    whole:
      'dividend|dividends|div|cdiv|mdiv|sdiv|reinvest shares|reinvest dividend|reinvestment|dividend reinvestment|qual div reinvest|div reinvest|cash dividend|stock dividend|special dividend|qualified dividend|non-qualified dividend|ordinary dividend|foreign dividend|dividend received|dividend payment|dividend income|franked dividend|non-qualified div|qualified div|pr yr cash div|pr yr div reinvest|pr yr special div|cash div|special div|return of capital|payment in lieu of dividends|dividende|dividendo|ausschüttung',
    begin:
      'dividend (|dividend received |reinvestment |long term cap gain|short term cap gain|cap gain|payment in lieu',
  },
  {
    kind: 'option_event',
    isSure: true,
    whole:
      'expired|expiration|expiry|assigned|assignment|exercise|exercised|option expired|option expiration|option assignment|option exercise|exchange or exercise|oexp|oasgn|oexcs|expired call|expired put|assigned call|assigned put|exercised call|exercised put',
    begin:
      'expired as of |assigned as of |exercised as of |exercise or expiration|expired call |expired put |assigned call |assigned put ',
  },
  {
    kind: 'corporate_action',
    isSure: true,
    whole:
      'split|stock split|forward split|reverse split|reverse stock split|stock plan activity|merger|stock merger|cash merger|cash stock merger|spin-off|spinoff|spin off|name change|symbol change|cash in lieu|cil|delisting|tender offer|rights issue|rights offering|bonus shares|bonus issue|mandatory reorg|voluntary reorg|mandatory reorg exc|corporate action|spl|sprw|mrgs|soff',
    begin: 'cash in lieu|stock split |reverse split ',
  },
  {
    kind: 'cash',
    isSure: true,
    whole:
      'funding|funding fee|funding fees|balance|deposit|deposits|cash deposit|wire deposit|withdrawal|withdrawals|withdraw|cash withdrawal|exchange deposit|exchange withdrawal|pro deposit|pro withdrawal|interest|bank interest|bond interest|credit interest|debit interest|margin interest|broker interest paid|broker interest received|interest on cash|interest earned|interest income|lending interest|int|adr fee|airdrop|staking|staking reward|staking rewards|staking income|rewards income|reward income|learning reward|inflation reward|journal|journaled shares|transfer|transfer in|transfer out|internal transfer|security transfer|account transfer|wire transfer|moneylink transfer|funds transfer|ach transfer|eft transfer|spot transfer|futures transfer|universal transfer|acati|acato|ach|send|receive|einzahlung|auszahlung|zinsen|überweisung',
    begin: 'electronic funds transfer|interest earned |direct deposit|moneylink |referral ',
  },
  {
    kind: 'cash',
    isSure: false,
    whole:
      'credit|debit|charge|correction|bonus|tax|commission|commission daily|commission monthly|agent|funds received|funds paid|funds disbursed|fee|fees|service fee|adr mgmt fee|misc fee|management fee|account fee|platform fee|data fee|market data fee|other fee|other fees|tax withholding|withholding|withholding tax|dividend withholding|misc|misc cash entry|misc credits|misc debits|adjustment|adjustments|rebate|cash|cash in|cash out|settlement|promotion|reward|visa purchase|atm withdrawal|subscription|top up|topup|conversion|currency conversion|dtax|dfee|afee|slip|gold|rtp|gdbp|commission rebate|sweep in|sweep out|nrat|iadj|ints',
    begin:
      'wire |foreign tax|nra tax|nra withholding|foreign withholding|nonres tax|tax withhold|adj |purchase into core|redemption from core',
  },
]

export interface RowKind {
  readonly kind: Kind
  /** Sure words hold for whole rows too; an order that was placed and taken back says so in another cell. */
  readonly certainty: 'sure' | 'likely' | 'if_cancelled'
}

const kindWith = (kind: Kind, isSure: boolean): RowKind => ({ kind, certainty: isSure ? 'sure' : 'likely' })

const KINDS = new Map(
  WORDS.flatMap(({ kind, isSure, whole }) => whole.split('|').map((word) => [word, kindWith(kind, isSure)] as const)),
)
const BEGINNINGS = WORDS.flatMap(({ kind, isSure, begin }) =>
  (begin?.split('|') ?? []).map((text) => [text, kindWith(kind, isSure)] as const),
)
/** How MetaTrader names an order that waits for its price. It lists those that were taken back among closed trades. */
const PENDING = /^(?:buy|sell) (?:limit|stop|stop limit)$/

/**
 * The kind of a row that is no trade, by the word in its column of types; null if the word can stand in a trade.
 *
 * @example kindOfType('Qualified Dividend') // { kind: 'dividend', certainty: 'sure' }
 */
export function kindOfType(type: string): RowKind | null {
  const word = type.toLowerCase().replace(/[\s_]+/g, ' ')
  if (PENDING.test(word)) return { kind: 'not_filled', certainty: 'if_cancelled' }
  return KINDS.get(word) ?? BEGINNINGS.find(([begin]) => word.startsWith(begin))?.[1] ?? null
}

/** Columns whose words say what a row is, as plain names. */
const TYPE_COLUMNS = new Set(
  'type action activity activitytype transaction transactiontype operation transcode recordtype filledtype tradetype entrytype event rowtype kind bookingtype buchungstyp vorgang typ'.split(
    ' ',
  ),
)

/** Whether a column of this plain name says what a row is. */
export const isTypeColumn = (plain: string): boolean => TYPE_COLUMNS.has(plain)

const TOTAL =
  /^(?:grand |sub ?|account |transactions? |net )?totals?\b|^(?:(?:zwischen|gesamt)?summe|gesamt|totale|totaal|suma|somme|soma|итого|всего|合计|合計|小计|小計|総計)(?=$|[\s:])/i

/** Whether one of the first cells of a row calls it a total. */
export const isTotal = (cells: readonly string[]): boolean => {
  let seen = 0
  for (const cell of cells) {
    if (cell === '') continue
    if (TOTAL.test(cell)) return true
    seen += 1
    if (seen === 4) return false
  }
  return false
}

/** Whether a cell says that an order was taken back. */
export const isCancelled = (cell: string): boolean => /^(?:cancell?ed|deleted|expired|rejected)\b/i.test(cell)
