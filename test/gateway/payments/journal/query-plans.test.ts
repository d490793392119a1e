import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { Client, Pool } from 'pg'
import sqlite3 from 'sqlite3'
import { openJournal } from '../../../../gateway/payments/journal/open-journal.ts'
import type { Journal } from '../../../../gateway/payments/journal/journal.ts'
import { AHEAD, LIMIT } from '../../../../gateway/payments/journal/postgres.ts'
import { connect } from '../../../../gateway/payments/journal/sqlite-connection.ts'
import { INTENT, paymentIn, reservationOf, STEPS, TRANSACTION } from '../../../contracts/journal-payments.ts'
import { openSchema, type Schema } from '../../../contracts/postgres.ts'

/** An SQL statement that the journal ran, with the values it ran with. */
interface Statement {
  readonly text: string
  readonly values: readonly unknown[]
}

/** Indexes of few rows, whatever the number of payments: unfinished payments, debts, answers not yet forgotten, failed settlements. */
const SMALL = [
  'payments_open',
  'payments_in_debt',
  'payments_kept',
  'payments_watched',
  'payments_reversed',
  'payments_unclear',
  'payments_reverted',
  'payments_reverted_payer',
  'payments_reverted_code',
]
const WINDOW = { from: 1_769_000_000_000, before: 1_769_000_100_000 }

/** Calls every method of the journal but `close`, once at least. */
async function useEverything(journal: Journal): Promise<void> {
  const named = reservationOf({ identifier: 'order-1' })
  const key = await paymentIn(journal, 'settled', named)
  await journal.reserve(named)
  await journal.reserve({ ...named, paysGas: true })
  await journal.find(key)
  await journal.findByIdentifier(named.payer, 'order-1')
  await journal.ofCalls([named.callId, 'another call'])
  await journal.delivered(key)
  await journal.claim(await paymentIn(journal, 'submitted'), 1)
  await STEPS.submitted(journal, await paymentIn(journal, 'answered'), 1)
  await journal.refused(await paymentIn(journal, 'submitted'), 1, { state: 'refused', reason: 'no', message: 'No.' })
  await STEPS.settledLate(journal, await paymentIn(journal, 'released'), 1)
  await journal.repaid(await paymentIn(journal, 'owed'), 'sent back')
  await journal.unclear()
  await journal.decided(key, 'repaid')
  await STEPS.settledAgain(journal, await paymentIn(journal, 'reversed'), 1)
  await journal.settledByOthers(await paymentIn(journal, 'submitted'), 1, TRANSACTION, 'owed: by others')
  await journal.keptAnswers(named.payer)
  await journal.refetched(key, 3)
  await journal.dueForLook(WINDOW.before, 500)
  await journal.lookAgain([{ key, at: WINDOW.before }])
  await journal.reversals(WINDOW.from, 100)
  await journal.openPayments()
  await journal.list({ limit: 10 })
  await journal.list({ states: ['settled'], operations: ['buyPlan'], limit: 10 })
  await journal.list({ payer: named.payer, limit: 10 })
  await journal.list({ transaction: TRANSACTION, limit: 10 })
  const [settlement] = await journal.settlements({ from: WINDOW.from, limit: 10 })
  await journal.settlements({ from: settlement ?? WINDOW.before, limit: 10 })
  await journal.debts()
  await journal.liveOwners()
  await journal.counts()
  journal.health()
  await journal.dailySums(WINDOW.before, [named.payer])
  await journal.topBuyers(WINDOW.before, 3)
  await journal.events(key)
  await journal.ledgerEntries({ ...WINDOW, limit: 10 })
  await journal.ledgerEntries({ ...WINDOW, after: { at: WINDOW.from, id: 1 }, limit: 10 })
  await journal.ledgerTotals(WINDOW, [named.payer])
  await journal.forgetAnswers(WINDOW.from)
}

/** Runs `useEverything` on a journal that notes which of its methods were called. */
async function useEveryMethod(journal: Journal): Promise<void> {
  const called = new Set<string>()
  const noting = new Proxy(journal, {
    get(target, name: string) {
      called.add(name)
      return target[name as keyof Journal]
    },
  })
  await useEverything(noting)
  const missed = Object.keys(journal).filter((name) => !called.has(name) && name !== 'owner' && name !== 'close')
  expect(missed, 'methods this test does not call').to.deep.equal([])
}

/** Replaces a method while `work` runs. `note` sees its arguments. */
async function spied(
  owner: object,
  method: string,
  note: (args: readonly unknown[]) => void,
  work: () => Promise<void>,
) {
  const methods = owner as Record<string, (...args: readonly unknown[]) => unknown>
  const original = methods[method] as (...args: readonly unknown[]) => unknown
  methods[method] = function (this: unknown, ...args) {
    note(args)
    return original.apply(this, [...args])
  }
  try {
    await work()
  } finally {
    methods[method] = original
  }
}

const touchesPayments = ({ text }: Statement): boolean =>
  /^\s*(SELECT|INSERT|UPDATE|DELETE|WITH)\b/.test(text) && /\bpayments\b|\bpayment_events\b/.test(text)

describe('every statement of the journal finds its payments by an index', () => {
  let folder: string
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'plans-'))
  })
  afterEach(() => rmSync(folder, { recursive: true }))

  it('in SQLite', async () => {
    const file = join(folder, 'journal.sqlite')
    const texts = new Set<string>()
    const note = ([text]: readonly unknown[]): void => void texts.add(String(text))
    const { prototype } = sqlite3.Database
    await spied(prototype, 'prepare', note, () =>
      spied(prototype, 'all', note, async () => {
        const journal = await openJournal({ file })
        await useEveryMethod(journal)
        await journal.close()
      }),
    )
    const statements = [...texts].map((text) => ({ text, values: [] })).filter(touchesPayments)
    expect(statements.length).to.be.greaterThan(15)

    const connection = await connect(file, 'read')
    const wrong: string[] = []
    for (const { text } of statements) {
      const plan = await connection.run(`EXPLAIN QUERY PLAN ${text}`)
      const steps = plan.map(({ detail }) => String(detail))
      wrong.push(...steps.filter((step) => !isIndexedSqlite(step, text)).map((step) => `${step}\n${text}`))
    }
    await connection.close()
    expect(wrong.join('\n\n')).to.equal('')
  })

  it('in PostgreSQL', async function () {
    const schema = await openSchema()
    if (!schema) this.skip()
    try {
      const statements = new Map<string, Statement>()
      const note = ([query]: readonly unknown[]): void => {
        if (typeof query === 'object') statements.set((query as Statement).text, query as Statement)
      }
      await fill(schema)
      await spied(Pool.prototype, 'query', note, async () => {
        const journal = await openJournal({ url: schema.url })
        await useEveryMethod(journal)
        await journal.close()
      })
      // These run in functions of the database.
      const { network, payer, key } = reservationOf()
      statements.set(AHEAD, { text: AHEAD, values: [payer, network, key] })
      const limited = [key, payer, network, '5000', '0xc0de', WINDOW.from]
      statements.set(LIMIT, { text: LIMIT, values: limited })
      const explained = [...statements.values()].filter(touchesPayments)
      expect(explained.length).to.be.greaterThan(15)
      const wrong = await scansOf(schema, explained)
      expect(wrong.join('\n\n')).to.equal('')
    } finally {
      await schema.drop()
    }
  })
})

/** True if a step of SQLite's plan reads no table of payments from end to end. */
function isIndexedSqlite(step: string, text: string): boolean {
  const scan =
    /^SCAN (payments|payment_events|payment_answers|payment_deliveries|answer_bodies|other|past|e|p|d|a|b)\b(?: USING (?:COVERING )?INDEX (\w+))?/.exec(
      step,
    )
  if (scan) return SMALL.includes(scan[2] ?? '') || isNewestFirst(text)
  return !/^SEARCH .*\((state|operation)=\?\)$/.test(step) || text.includes('LIMIT')
}

/** A list without conditions reads the newest rows and stops at its limit. */
function isNewestFirst(text: string): boolean {
  return /FROM payments\s+ORDER BY id DESC LIMIT/.test(text)
}

/** A year of a small shop: 20,000 settled payments, one every half hour; the last 5,000 have an identifier. */
async function fill(schema: Schema): Promise<void> {
  await (await openJournal({ url: schema.url })).close()
  const { payer, payTo, network, asset } = reservationOf()
  await schema.sql(`
    INSERT INTO payments (key, state, attempt, fingerprint, operation, route, network, asset, payer, pay_to, amount, nonce,
      valid_after, valid_before, signature, version, price_version, call_id, identifier, owner, intent, transaction_hash, created_at,
      updated_at, settled_at, answer_status)
    SELECT 'old/' || n, 'settled', 1, 'f', 'op' || n % 20, 'GET /', '${network}', '${asset}', '${payer}' || n % 500,
      '${payTo}', 5000, n::text, 0, 2000000000, 's', 2, 'v', n::text,
      CASE WHEN n > 15000 THEN n::text END, 'gone', '${JSON.stringify(INTENT)}', '0x' || n,
      1740000000000 + n * 1800000::bigint, 1740000000000 + n * 1800000::bigint, 1740000000000 + n * 1800000::bigint, 200
    FROM generate_series(1, 20000) AS n`)
  // By name: without one, ANALYZE locks the tables of every other test in this database, too.
  await schema.sql('ANALYZE payments, payment_events')
}

/** The steps of PostgreSQL's plans that read a table of payments from end to end. */
async function scansOf(schema: Schema, statements: readonly Statement[]): Promise<readonly string[]> {
  const client = new Client({ connectionString: schema.url })
  await client.connect()
  try {
    const wrong: string[] = []
    for (const { text, values } of statements) {
      const { rows } = await client.query({ text: `EXPLAIN (FORMAT JSON) ${text}`, values: [...values] })
      const [{ Plan: plan }] = rows[0]['QUERY PLAN'] as [{ Plan: PlanNode }]
      wrong.push(
        ...nodesOf(plan)
          .filter((node) => isScan(node, text))
          .map((node) => `${node['Node Type']}\n${text}`),
      )
    }
    return wrong
  } finally {
    await client.end()
  }
}

interface PlanNode {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly 'Index Name'?: string
  readonly 'Index Cond'?: string
  readonly 'Recheck Cond'?: string
  readonly Plans?: readonly PlanNode[]
}

function nodesOf(node: PlanNode): readonly PlanNode[] {
  return [node, ...(node.Plans ?? []).flatMap(nodesOf)]
}

function isScan(node: PlanNode, text: string): boolean {
  if (!['payments', 'payment_events'].includes(node['Relation Name'] ?? '')) return false
  if (node['Node Type'] === 'Seq Scan') return true
  const isWhole = node['Node Type'].startsWith('Index') && node['Index Cond'] === undefined
  return isWhole && !SMALL.includes(node['Index Name'] ?? '') && !isNewestFirst(text)
}
