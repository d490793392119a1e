/** One payment per payer and identifier: what every form of the ledger promises of idempotency keys. */
import { expect } from 'chai'
import type { Journal } from '../../gateway/payments/journal/journal.ts'
import type { Ledger } from './journal.ts'
import { paymentIn, reservationOf, STEPS } from './payment.ts'

/** `create` makes an empty ledger, or null where its server does not answer. */
export function identifiersContract(name: string, create: () => Promise<Ledger | null>): void {
  describe(`identifiers in ${name}`, () => {
    let ledger: Ledger
    let journal: Journal
    let count = 0
    const named = (change: Parameters<typeof reservationOf>[0] = {}) =>
      reservationOf({ identifier: `identifier-${count}`, ...change })

    before(async function () {
      const created = await create()
      if (!created) this.skip()
      ledger = created
      journal = created.journal
    })
    beforeEach(() => (count += 1))
    after(async () => ledger?.drop())

    it('takes the identifier from a payment whose money came late, since another may have it by now', async () => {
      const [first, second] = [named(), named()]
      await paymentIn(journal, 'released', first)
      expect((await journal.reserve({ ...second, identifier: first.identifier })).reserved).to.equal(true)
      expect(await STEPS.late(journal, first.key, 1)).to.equal(true)
      expect(await journal.find(first.key)).to.include({ state: 'settled', identifier: null, answer: null })
      expect((await journal.openPayments()).map(({ key }) => key)).to.include(first.key)
    })

    it('refuses a second payment of the same payer by the same identifier, and shows the first', async () => {
      const first = named()
      await paymentIn(journal, 'settled', first)
      const { reserved, record } = await journal.reserve(named())
      expect(reserved).to.equal(false)
      expect(record).to.include({ key: first.key, identifier: first.identifier, state: 'settled' })
      expect(await journal.findByIdentifier(first.payer, first.identifier as string)).to.include({ key: first.key })
      expect(await journal.findByIdentifier(first.payer, 'another')).to.equal(null)
    })

    it('lets payers use the same words, and one payer pay without any', async () => {
      const reservations = [named(), named({ payer: '0x00000000000000000000000000000000000000b2' })]
      reservations.push(reservationOf(), reservationOf())
      const results = await Promise.all(reservations.map((one) => journal.reserve(one)))
      expect(results.map(({ reserved }) => reserved)).to.deep.equal([true, true, true, true])
    })

    it('lets one of many payments that come together have the identifier', async () => {
      const results = await Promise.all(Array.from({ length: 30 }, () => journal.reserve(named())))
      expect(results.filter(({ reserved }) => reserved)).to.have.length(1)
      const [winner] = results.filter(({ reserved }) => reserved)
      for (const { record } of results) expect(record.key).to.equal(winner?.record.key)
    })

    it('gives the identifier of a released payment free, and then holds it for the one that took it', async () => {
      const [first, second] = [named(), named()]
      await paymentIn(journal, 'released', first)
      expect((await journal.reserve(second)).reserved).to.equal(true)
      const again = await journal.reserve(first)
      expect(again.reserved).to.equal(false)
      expect(again.record.key).to.equal(second.key)
      await STEPS.released(journal, second.key, 1)
      expect((await journal.reserve(first)).record).to.include({ attempt: 2, identifier: first.identifier })
    })

    it('forgets an identifier, and the place, with the answer they were kept for', async () => {
      const first = named({ place: 'there' })
      await paymentIn(journal, 'settled', first)
      ledger.now += 1_000
      await journal.forgetAnswers(ledger.now)
      expect(await journal.find(first.key)).to.include({ identifier: null, place: null, answer: null })
      expect((await journal.reserve(named())).reserved).to.equal(true)
    })

    // What is only in memory has no other process and no past.
    if (name.includes('memory')) return

    it('holds between processes, and after a restart', async () => {
      const { open } = ledger
      if (!open) throw new Error(`${name} cannot be opened twice`)
      const others = [await open(), await open()]
      for (let round = 0; round < 10; round++) {
        count += 1
        const all = [journal, ...others].flatMap((one) => [one.reserve(named()), one.reserve(named())])
        const results = await Promise.all(all)
        expect(results.filter(({ reserved }) => reserved)).to.have.length(1)
        expect(new Set(results.map(({ record }) => record.key)).size).to.equal(1)
      }
      for (const one of others) await one.close()
      const later = await open()
      expect((await later.reserve(named())).reserved).to.equal(false)
    })

    it('adds them, with place and delivery, to a ledger that an earlier release wrote', async () => {
      const { open, sql } = ledger
      if (!open || !sql) throw new Error(`${name} cannot be opened twice`)
      const key = await paymentIn(journal, 'settled')
      await sql('DROP INDEX payments_identified')
      for (const column of ['identifier', 'place', 'delivered_at'])
        await sql(`ALTER TABLE payments DROP COLUMN ${column}`)
      await sql('PRAGMA user_version = 1').catch(() => {})
      const upgraded = await open()
      const nothing = { identifier: null, place: null, deliveredAt: null }
      expect(await upgraded.find(key)).to.include({ state: 'settled', ...nothing })
      expect((await upgraded.reserve(named())).reserved).to.equal(true)
      expect((await upgraded.reserve(named())).reserved).to.equal(false)
    })
  })
}
