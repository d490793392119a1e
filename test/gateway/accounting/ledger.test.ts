import { expect } from 'chai'
import Papa from 'papaparse'
import {
  createLedger,
  isOver,
  type Ledger,
  monthBefore,
  monthOf,
  RepaymentError,
} from '../../../gateway/accounting/ledger.ts'
import { exportMonth, type Format } from '../../../gateway/accounting/ledger-export.ts'
import type { Journal } from '../../../gateway/payments/journal/journal.ts'
import type { Hex } from '../../../gateway/config/networks.ts'
import type { TestJournal as OpenedJournal } from '../../contracts/journals.ts'
import { JOURNALS } from '../../contracts/journals.ts'
import { answerOf, INTENT, paymentIn, reservationOf } from '../../contracts/journal-payments.ts'

const OWN = '0x00000000000000000000000000000000000000C1'
const NOVEMBER = monthOf('2026-11')
const hash = (nth: number): Hex => `0x${nth.toString(16).padStart(64, '0')}`

interface Line {
  readonly kind: string
  readonly amount: string
  readonly amount_atomic: string
  readonly own_wallet: string
  readonly transaction: string
  readonly note: string
  readonly repaid_by: string
}

/** Parses a decimal amount: "0.005000" is 5000n. */
const units = (amount: string): bigint => BigInt(amount.replace('.', ''))

for (const [name, create] of Object.entries(JOURNALS))
  describe(`the ledger in ${name}`, () => {
    let opened: OpenedJournal
    let journal: Journal
    let ledger: Ledger

    /** Settles a payment in its own transaction. */
    async function sell(nth: number, amount: bigint, change: Parameters<typeof reservationOf>[0] = {}) {
      const reservation = reservationOf({ amount, ...change })
      const { key } = reservation
      await journal.reserve(reservation)
      await journal.answered(key, 1, answerOf('the answer that was bought'))
      await journal.submitted(key, 1, INTENT)
      await journal.settled(key, 1, hash(nth))
      return reservation
    }
    const text = async (format: Format, month = NOVEMBER): Promise<string> => {
      let all = ''
      for await (const chunk of exportMonth(ledger, month, format)) all += chunk
      return all
    }
    const lines = async (month = NOVEMBER): Promise<readonly Line[]> =>
      Papa.parse<Line>(await text('csv', month), { header: true, skipEmptyLines: true }).data

    before(async function () {
      const created = await create()
      if (!created) this.skip()
      opened = created
      journal = created.journal
      ledger = createLedger({ journal, own: [OWN.toLowerCase()] })
      opened.now = NOVEMBER.from - 1
      await sell(1, 999_999n)
      opened.now = NOVEMBER.from
      await sell(2, 5_000n)
      await sell(3, 750_000_000n, { operation: 'buyPlan' })
      await sell(4, 7n, { payer: OWN })
      await paymentIn(journal, 'submitted', reservationOf({ amount: 11n }))
      await paymentIn(journal, 'released', reservationOf({ amount: 13n }))
      opened.now = NOVEMBER.before - 1
      await sell(5, 1n)
      opened.now = NOVEMBER.before
      await sell(6, 888_888n)
    })
    after(async () => opened?.drop())

    it('exports every sale of a month as CSV and JSON, adding up to the settled amount to the atomic unit', async () => {
      const sales = await lines()
      const sums = await journal.dailySums(NOVEMBER.from, [])
      const last = NOVEMBER.before / 86_400_000
      const settled = sums.filter(({ day }) => day < last).reduce((sum, { amount }) => sum + amount, 0n)
      expect(settled).to.equal(750_005_008n)
      expect(sales.map(({ kind }) => kind)).to.deep.equal(['sale', 'sale', 'sale', 'sale'])
      expect(sales.reduce((sum, { amount }) => sum + units(amount), 0n)).to.equal(settled)
      expect(sales.reduce((sum, { amount_atomic: amount }) => sum + BigInt(amount), 0n)).to.equal(settled)
      expect(sales.map(({ transaction }) => transaction)).to.deep.equal([2, 3, 4, 5].map(hash))
      expect(sales.map((line) => line.own_wallet)).to.deep.equal(['no', 'no', 'yes', 'no'])
      expect((await ledger.totals(NOVEMBER)).map(({ count, amount }) => [count, amount])).to.deep.equal([
        [3, 750_005_001n],
        [1, 7n],
      ])
      const { entries, totals } = JSON.parse(await text('json')) as { entries: Line[]; totals: object[] }
      expect(entries).to.deep.equal(sales)
      const network = 'eip155:84532'
      expect(totals).to.deep.equal([
        { network, kind: 'sale', own_wallets: false, count: 3, amount: '750.005001', amount_atomic: '750005001' },
        { network, kind: 'sale', own_wallets: true, count: 1, amount: '0.000007', amount_atomic: '7' },
      ])
    })

    it('exports neither signatures nor answers', async () => {
      const all = (await text('csv')) + (await text('json'))
      const { proof } = (await journal.list({ limit: 1 }))[0] ?? {}
      expect(all).to.not.contain('the answer that was bought').and.not.contain(proof)
    })

    it('exports the same bytes of a past month, whatever happens to its payments later', async () => {
      const before = [await text('csv'), await text('json')]
      const [sold] = await journal.list({ transaction: hash(2), limit: 2 })
      opened.now = monthOf('2027-01').from
      await journal.owed(sold?.key ?? '', 1, 'the answer is lost')
      await ledger.repay({ transaction: hash(2), note: `${hash(77)} =HYPERLINK("http://evil.example")` })
      await journal.forgetAnswers(opened.now)
      expect([await text('csv'), await text('json')]).to.deep.equal(before)
      const later = await lines(monthOf('2027-01'))
      expect(later.map(({ kind, amount }) => [kind, amount])).to.deep.equal([
        ['debt', '0.005000'],
        ['repayment', '0.005000'],
      ])
      const added = await ledger.totals(monthOf('2027-01'))
      expect(added.map(({ kind, isOwn, amount }) => ({ kind, isOwn, amount }))).to.deep.equal([
        { kind: 'debt', isOwn: false, amount: 5_000n },
        { kind: 'repayment', isOwn: false, amount: 5_000n },
      ])
      expect(later[0]).to.include({ note: 'the answer is lost', repaid_by: '', transaction: hash(2) })
      expect(later[1]).to.include({ repaid_by: hash(77), transaction: hash(2) })
    })

    it('writes no cell that a spreadsheet would evaluate as a formula', async () => {
      await sell(8, 5n, { route: '=1+1', operation: '@SUM(A1)', callId: '-2+3', priceVersion: '+4' })
      const [line = ''] = (await text('csv', monthOf('2027-01'))).split('\r\n').filter((row) => row.includes(hash(8)))
      expect(line.split(',').filter((cell) => /^"?[=+\-@]/.test(cell))).to.deep.equal([])
      expect(line).to.contain("'=1+1").and.to.contain("'@SUM(A1)").and.to.contain("'-2+3")
    })

    it('writes no cell of several lines that a spreadsheet would evaluate as a formula', async () => {
      const note = '=HYPERLINK("https://evil.example","paid")\nback'
      await sell(9, 5n, { route: note, operation: '\n=1+1' })
      const rows = Papa.parse<Record<string, string>>(await text('csv', monthOf('2027-01')), { header: true }).data
      expect(rows.find(({ transaction }) => transaction === hash(9))).to.include({
        route: `'${note}`,
        operation: "'\n=1+1",
      })
    })

    it('reads entries page by page, each entry once', async () => {
      const window = { from: 0, before: NOVEMBER.before, limit: 2 }
      const allEntries = await journal.ledgerEntries({ ...window, limit: 100 })
      expect(allEntries).to.have.length(5)
      const first = await journal.ledgerEntries(window)
      const [, end] = first
      if (!end) throw new Error('the page is too short')
      const rest = await journal.ledgerEntries({ ...window, after: end, limit: 100 })
      expect([...first, ...rest]).to.deep.equal(allEntries)
    })

    it('marks a debt as repaid once, and refuses everything else', async () => {
      const refusal = async (transaction: string, payment?: string): Promise<string> => {
        const repayment = { transaction, note: 'sent', ...(payment === undefined ? {} : { payment }) }
        const error: unknown = await ledger.repay(repayment).then(
          () => null,
          (thrown: unknown) => thrown,
        )
        expect(error).to.be.instanceOf(RepaymentError)
        return (error as Error).message
      }
      expect(await refusal('0x12')).to.contain('is not a transaction hash')
      expect(await refusal(hash(4040))).to.contain('no such payment')
      expect(await refusal(hash(3))).to.contain('its payment is settled')
      expect(await refusal(hash(2))).to.contain('was repaid on 2027-01-01')
      const [first, second] = [await sell(9, 20n), await sell(9, 30n)]
      for (const { key } of [first, second]) await journal.owed(key, 1, 'the answer is lost')
      expect(await refusal(hash(9)))
        .to.contain(first.key)
        .and.to.contain(second.key)
      const repaid = await ledger.repay({
        transaction: hash(9).toUpperCase().replace('0X', '0x'),
        payment: second.key,
        note: 'sent',
      })
      expect(repaid.amount).to.equal(30n)
      expect((await ledger.debts()).map(({ key }) => key)).to.deep.equal([first.key])
      expect(await refusal(hash(9), second.key)).to.contain('was repaid on')
      expect((await journal.find(second.key))?.state).to.equal('owed')
    })
  })

describe('a month', () => {
  it('starts and ends in UTC, and is over an hour after its end', () => {
    expect([NOVEMBER.from, NOVEMBER.before]).to.deep.equal([Date.UTC(2026, 10, 1), Date.UTC(2026, 11, 1)])
    expect(monthOf('2026-12').before).to.equal(Date.UTC(2027, 0, 1))
    expect(isOver(NOVEMBER, new Date(NOVEMBER.before))).to.equal(false)
    expect(isOver(NOVEMBER, new Date(NOVEMBER.before + 3_600_000))).to.equal(true)
    expect(monthBefore('2027-01')).to.equal('2026-12')
    for (const name of ['2026-13', '2026-00', '2026-1', '11-2026', '', '2026-11-01'])
      expect(() => monthOf(name), name).to.throw('is not a month')
  })
})
