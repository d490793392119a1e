import { expect } from 'chai'
import fc from 'fast-check'
import { BUCKETS, type Bucket } from '../../../../gateway/accounting/reconciliation/buckets.ts'
import { openFindings, type Row } from '../../../../gateway/accounting/reconciliation/findings.ts'
import { DATABASES, type TestDatabase } from '../../../contracts/databases.ts'

const NETWORKS = ['eip155:8453', 'eip155:84532'] as const

function rowOf(id: number, bucket: Bucket, block: number | null): Row {
  return {
    id: `0x${id}/0`,
    bucket,
    note: '',
    network: NETWORKS[id % 2] as string,
    transaction: block === null ? null : '0x01',
    block,
    payer: '0x00000000000000000000000000000000000000a1',
    amount: 5000n,
    payment: null,
    isOwn: false,
    sender: null,
    isForeign: false,
    at: id,
  }
}

const ids = fc.integer({ min: 0, max: 30 })
const rows = fc.uniqueArray(fc.record({ id: ids, bucket: fc.constantFrom(...BUCKETS), block: ids }), {
  selector: ({ id }) => id,
})
const changes = fc.array(
  fc.oneof(
    fc.record({ put: rows }),
    fc.record({ put: rows, instead: fc.record({ network: fc.constantFrom(...NETWORKS), from: ids, to: ids }) }),
    fc.record({ remove: ids }),
  ),
  { maxLength: 12 },
)

for (const [name, create] of Object.entries(DATABASES))
  describe(`the findings of reconciliation in ${name}`, () => {
    let opened: TestDatabase

    before(async function () {
      const created = await create()
      if (!created) this.skip()
      opened = created
    })
    after(async () => opened?.drop())

    /** The numbers as the rows themselves show them. */
    async function counted(network: string): Promise<Record<string, number>> {
      const found = await opened.db('reconciled_rows').where({ network })
      return Object.fromEntries(
        BUCKETS.map((bucket) => [bucket, found.filter((row: { bucket: Bucket }) => row.bucket === bucket).length]),
      )
    }

    it('are counted by bucket, whatever is written, replaced and removed', async () => {
      const findings = await openFindings(opened.db)
      await fc.assert(
        fc.asyncProperty(changes, async (sequence) => {
          for (const change of sequence)
            if ('remove' in change) await findings.remove(`0x${change.remove}/0`)
            else
              await findings.put(
                change.put.map(({ id, bucket, block }) => rowOf(id, bucket, block)),
                undefined,
                'instead' in change ? change.instead : undefined,
              )
          for (const network of NETWORKS) {
            const counts = await findings.counts(network)
            const kept = Object.fromEntries(BUCKETS.map((bucket) => [bucket, counts.get(bucket) ?? 0]))
            expect(kept).to.deep.equal(await counted(network))
          }
        }),
        { numRuns: 40 },
      )
    })

    it('of earlier releases are counted when the table is made', async () => {
      const { db } = opened
      const findings = await openFindings(db)
      await findings.put([rowOf(100, 'matched', 7), rowOf(102, 'matched', 8), rowOf(104, 'missing', null)])
      const before = await findings.counts(NETWORKS[0])
      expect(before.get('matched')).to.be.greaterThan(1)
      await db.schema.dropTable('reconciled_counts')
      for (const change of ['new', 'gone', 'moved'])
        await db.raw(
          opened.db.client.config.client === 'pg'
            ? `DROP FUNCTION reconciled_count_${change} CASCADE`
            : `DROP TRIGGER reconciled_count_${change}`,
        )
      await db('migrations').where({ name: 'reconciliation', step: 4 }).delete()
      // Buckets that have become empty are not counted afresh.
      const filled = [...before].filter(([, count]) => count > 0)
      expect([...(await (await openFindings(db)).counts(NETWORKS[0]))]).to.have.deep.members(filled)
    })
  })
