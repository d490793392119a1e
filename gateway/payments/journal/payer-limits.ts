/**
 * Limits the gas that a payer can cost us: the payments it may have unsettled at once, and how long it waits after
 * settlements that failed. A failed transaction costs gas and moves no money, so the limits start low, grow with each
 * payment that the payer settles, and shrink with each that fails. If the payer's account has code, a settlement that
 * succeeds may cost as much, so its gas beyond that of a plain payer counts as well. The statement that reserves a
 * payment checks the limits, so they hold for all processes that share a journal. The SQL is the same for both
 * databases.
 */
import type { PayerLimit } from './journal.ts'
import { comesAfter } from './shared-sql.ts'

/** Unsettled payments of a payer that has settled none. Each settled payment allows one more. */
const FIRST_PAYMENTS = 2
/** Atomic units of a payer that has settled none. What it has settled is added. A single payment may be larger. */
const FIRST_VALUE = 20_000_000
/** How many of a payer's payments are looked at: a bound on the work of one reservation. */
const MAX_READ = 1_000
/** How long a failed settlement counts. */
const REMEMBERED_MS = 86_400_000
/** How long a payer waits after its first, second, third and fourth failed settlement within a day, and after more. */
const PAYER_WAITS_MS = [30_000, 120_000, 600_000, 3_600_000, 86_400_000] as const
/** The same for payers of one code together: one of them may have failed through no fault of the code. */
const CODE_WAITS_MS = [0, 0, 600_000, 600_000, 3_600_000, 3_600_000, 3_600_000, 3_600_000, 86_400_000] as const

/** The gas that a settlement of a payer with code may use without counting: the gas limit of a payer without. */
export const FREE_GAS = 200_000n
/** So much gas beyond that within a day counts as one failed settlement, which may burn 600,000. */
const GAS_PER_FAILURE = 1_000_000
/** Much gas counts as so many failures at most: a payer whose settlements cost much has paid for them after all. */
const MAX_COSTLY = 3

/** SQL of how many failed settlements the gas of a group counts as. */
const costlyNumber = `CASE WHEN sum(gas) >= ${MAX_COSTLY * GAS_PER_FAILURE} THEN ${MAX_COSTLY} ELSE CAST(sum(gas) AS bigint) / ${GAS_PER_FAILURE} END`

/** SQL of when the wait after the failed settlements of a group is over: `count` of them, the last one at `last`. */
const waitEnd = (waits: readonly number[], count = 'count(*)', last = 'max(past.reverted_at)'): string =>
  `CASE ${count} WHEN 0 THEN 0 ${waits
    .slice(0, -1)
    .map((ms, at) => `WHEN ${at + 1} THEN ${last} + ${ms}`)
    .join(' ')} ELSE ${last} + ${waits.at(-1)} END`

/** The columns of a reservation that the limits depend on. */
export const LIMITED_COLUMNS = ['key', 'payer', 'network', 'amount', 'payer_code', 'at'] as const

/** SQL of each of them. */
type Reserved = Readonly<Record<(typeof LIMITED_COLUMNS)[number], string>>

/** SQL of the reason why a payment may not be reserved: null, or the text that `payerLimitOf` reads. */
export function payerLimitSql({ key, payer, network, amount, payer_code: code, at }: Reserved): string {
  const own = `(SELECT p.state, p.amount FROM payments AS p WHERE lower(p.payer) = lower(${payer}) ORDER BY p.id LIMIT ${MAX_READ}) AS own`
  /** How many payments it has settled, up to `most`: reading stops there. */
  const settled = (most: number): string =>
    `(SELECT count(*) FROM (SELECT 1 AS one FROM ${own} WHERE own.state = 'settled' LIMIT ${most}) AS counted)`
  const needed = `((held.number + 1) * (1 + failed.number) - ${FIRST_PAYMENTS})`
  const value = `(held.total + CAST(${amount} AS numeric))`
  const since = `past.reverted_at > ${at} - ${REMEMBERED_MS}`
  return `(SELECT CASE
    WHEN EXISTS (SELECT 1 FROM payments AS p WHERE p.key = ${key} AND p.reverted_at IS NOT NULL AND p.state = 'released')
      THEN 'reverted'
    WHEN failed.until > ${at} THEN 'cooling ' || failed.until
    WHEN ${code} IS NOT NULL AND ${settled(1)} = 0
      AND (SELECT ${waitEnd(CODE_WAITS_MS)} FROM payments AS past WHERE past.payer_code = ${code} AND ${since}) > ${at}
      THEN 'cooling ' || (SELECT ${waitEnd(CODE_WAITS_MS)} FROM payments AS past
        WHERE past.payer_code = ${code} AND ${since})
    WHEN held.number = 0 THEN NULL
    WHEN ${needed} > 0 AND ${needed} > CASE WHEN ${needed} <= 8 THEN ${settled(8)} WHEN ${needed} <= 64 THEN ${settled(64)}
      ELSE ${settled(MAX_READ)} END THEN 'waiting'
    WHEN ${value} > ${FIRST_VALUE} AND ${value} > ${FIRST_VALUE} + (
      SELECT coalesce(sum(CAST(own.amount AS numeric)), 0) FROM ${own} WHERE own.state = 'settled') THEN 'waiting'
    END
  FROM (SELECT count(CASE WHEN other.state <> 'answered' THEN 1 END) AS number,
    coalesce(sum(CASE WHEN other.state <> 'answered' THEN CAST(other.amount AS numeric) END), 0) AS total
    FROM payments AS other WHERE ${comesAfter(payer, network, key)}) AS held,
    (SELECT number, ${waitEnd(PAYER_WAITS_MS, 'number', 'last')} AS until FROM (
      SELECT CAST(sum(failures) AS bigint) + ${costlyNumber} AS number, max(last) AS last FROM (
        SELECT count(*) AS failures, 0 AS gas, max(past.reverted_at) AS last FROM payments AS past
          WHERE past.payer = ${payer} AND past.network = ${network} AND ${since}
        UNION ALL SELECT 0, coalesce(sum(past.excess_gas), 0), max(past.settled_at) FROM payments AS past
          WHERE past.payer = ${payer} AND past.network = ${network} AND past.excess_gas IS NOT NULL
            AND past.settled_at > ${at} - ${REMEMBERED_MS}) AS costs) AS cost) AS failed)`
}

/** Reads the text of `payerLimitSql`. */
export function payerLimitOf(text: unknown): PayerLimit | null {
  if (typeof text !== 'string') return null
  const [reason, until] = text.split(' ')
  if (reason === 'cooling') return { reason, until: Number(until) }
  return { reason: reason as 'reverted' | 'waiting' }
}

/** Finds the costly settlements of a payer. */
export const COSTLY_INDEX =
  'CREATE INDEX payments_costly ON payments (payer, network, settled_at) WHERE excess_gas IS NOT NULL;'

/** Finds the failed settlements of a payer, of a code, and of a stretch of time. All three have few rows. */
export const REVERTED_INDEXES = `
CREATE INDEX payments_reverted_payer ON payments (payer, network, reverted_at) WHERE reverted_at IS NOT NULL;
CREATE INDEX payments_reverted_code ON payments (payer_code, reverted_at) WHERE reverted_at IS NOT NULL;
CREATE INDEX payments_reverted ON payments (reverted_at) WHERE reverted_at IS NOT NULL;`
