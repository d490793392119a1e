import { expect } from 'chai'
import type { Comparison } from '../../../../gateway/accounting/reconciliation/comparison.ts'
import type { Findings } from '../../../../gateway/accounting/reconciliation/findings.ts'
import { createReconciliation } from '../../../../gateway/accounting/reconciliation/reconciliation.ts'
import { createMetrics } from '../../../../gateway/accounting/metrics.ts'
import type { Edition } from '../../../../gateway/products/edition.ts'
import { createLog } from '../../../../gateway/observe/log.ts'
import { until } from '../../../support/until.ts'

const BUCKETS = { matched: 2, pending: 0, missing: 1, amount_differs: 0, unknown: 0, unreadable: 0 }

describe('reconciliation in several processes', () => {
  it('leaves its figures to the process that compares now', async () => {
    const journal = { counts: async () => ({}) as never, debts: async () => [] }
    const edition = { status: () => [], facts: async () => ({}) } as unknown as Edition
    const metrics = createMetrics({ journal, edition: () => edition })
    let holdsLease = true
    let tries = 0
    const results: (Comparison | null)[] = []
    const compared: Comparison = { at: new Date(), readTo: 1, unreadable: null, buckets: BUCKETS }
    const reconciliation = createReconciliation({
      compare: Object.assign(async () => compared, { look: async () => {} }),
      findings: {} as Findings,
      lease: {
        async hold() {
          tries += 1
          return holdsLease
        },
      },
      onCompared(comparison) {
        results.push(comparison)
        metrics.reconciled(comparison?.buckets ?? {})
      },
      log: createLog('silent'),
    })
    reconciliation.start(0.02, 0.01)
    await until(() => results.length > 1)
    expect(await metrics.text()).to.include('tollgate_reconciled_rows{bucket="missing"} 1')
    holdsLease = false
    await until(() => results.at(-1) === null)
    expect(await metrics.text()).to.not.include('tollgate_reconciled_rows{')
    const lost = results.length
    const triesBefore = tries
    await until(() => tries > triesBefore + 2)
    expect(results).to.have.length(lost)
    holdsLease = true
    await until(() => results.length > lost)
    expect(await metrics.text()).to.include('tollgate_reconciled_rows{bucket="missing"} 1')
    await reconciliation.stop()
  })
})
