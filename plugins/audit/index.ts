/** The backtest audit: takes a trade ledger, returns a report, and stores it at an address that nobody can guess. */
import { type Call, type CallOf, definePlugin, hasUnreadBody, NotFound, Reply, Unavailable } from 'tollgate/plugin'
import { type DataSettings, dataSettings } from '../lib/feeds/data-settings.ts'
import { PRIVATE_HEADERS } from '../lib/private-headers.ts'
import { type Audit, audit, type AuditContext, published, summaryOf } from './audit.ts'
import { type Form, requestOf, type WorkInput } from './audit-work.ts'
import { methodology } from './audit-methodology.ts'
import { costPerSide, DEFAULT_PRESET, type PresetName, PRESETS } from './cost-presets.ts'
import { type Holder, migrations, openReportStore } from './report-store.ts'

/** A report as it is stored and sold. */
interface Report extends Audit {
  readonly rid: string
  readonly report_url: string
  readonly summary: string
}

/**
 * A larger upload is audited in a worker thread. A ledger of this size takes 5 ms, and handing it to a thread and back
 * takes 0.7 ms, of which 0.3 ms are spent on the event loop.
 */
const MAX_INLINE_BYTES = 4096

/** How often reports are deleted that are free and too old, or were not paid for. */
const EXPIRE_SECONDS = 600

/** Id of the report on the example in the catalog. */
const SAMPLE = 'sample'

/** Why the bars of the service cannot be compared with real trades: they are made up or moved in time. Otherwise null. */
export function unusableBarsReason({ dataMode, replayShift }: DataSettings): string | null {
  if (dataMode === 'sample') return 'reference bars are sample data'
  const isMoved = dataMode === 'replay' && replayShift.seconds !== 0
  return isMoved ? 'reference bars are a recording moved in time' : null
}

const reportOf = (rid: string, result: Audit): Report => ({
  rid,
  report_url: `/report/${rid}`,
  summary: summaryOf(result),
  ...published(result),
})

const filesOf = ({ file, bars }: Form): readonly Buffer[] => [file.bytes, ...(bars ? [bars.bytes] : [])]

/** What the report of a call is kept for. */
function holderOf({ id, access, client }: Pick<Call, 'id' | 'access' | 'client'>): Holder {
  if (access.kind === 'free') return { client }
  return access.kind === 'payment' ? { callId: id } : { wallet: access.subject }
}

const sizeOf = (files: readonly Buffer[]): number => files.reduce((sum, { length }) => sum + length, 0)

interface SampleBody {
  readonly file: string
  readonly bars?: string
}

/** Audits the example in the catalog, so that people can see a report before they have a ledger. */
async function sampleReport({ catalog, ...context }: AuditContext & Pick<Call, 'catalog'>): Promise<Report> {
  const body = catalog.operations.get('auditBacktest')?.example?.request.body as SampleBody | undefined
  if (!body) throw new NotFound('There is no sample report: the catalog has no example.')
  const files = { file: Buffer.from(body.file), bars: body.bars === undefined ? undefined : Buffer.from(body.bars) }
  const assumed = { preset: DEFAULT_PRESET, trials: 10, extraBps: 0, symbol: undefined }
  return reportOf(SAMPLE, await audit({ ...files, ...assumed }, context))
}

export default definePlugin({
  name: 'audit',
  migrations,
  setup(context) {
    const { db, work, now, charged } = context
    const reports = openReportStore(db)
    const unusableReason = unusableBarsReason(dataSettings(context))

    async function run(call: CallOf<'auditBacktest' | 'submitAudit'>): Promise<Audit> {
      const { input, ask, asOf } = call
      const files = hasUnreadBody(input) ? null : filesOf(input.body)
      if (files && sizeOf(files) <= MAX_INLINE_BYTES) return audit(requestOf(input.body), { ask, asOf, unusableReason })
      // A file that has its memory to itself moves to the thread. To copy one takes up to 15 ms.
      const transfer = (files ?? []).flatMap(({ buffer, length }) =>
        buffer instanceof ArrayBuffer && buffer.byteLength === length ? [buffer] : [],
      )
      const workInput: WorkInput = { input, asOf, unusableReason }
      return work<Audit>(new URL('./audit-work.ts', import.meta.url), workInput, { call, transfer })
    }

    async function auditBacktest(call: CallOf<'auditBacktest' | 'submitAudit'>): Promise<Report> {
      const { id, asOf } = call
      const holder = holderOf(call)
      if ('client' in holder) await assertRoom(holder.client)
      const result = await run(call)
      const rid = await reports.idFor(id, result.ledger.sha256)
      const report = reportOf(rid, result)
      await reports.save(rid, asOf, report, holder)
      return report
    }

    /** Throws Unavailable if a free report of this client could not be stored. */
    async function assertRoom(client: string): Promise<void> {
      const fullUntil = await reports.fullUntil(client, now())
      if (!fullUntil) return
      const message = `No free report can be stored before ${fullUntil.toISOString()}, because too many are kept. Delete one of yours, or buy the audit: its report is always stored.`
      throw new Unavailable(message, Math.ceil((fullUntil.getTime() - now().getTime()) / 1000))
    }

    async function expire(): Promise<void> {
      await reports.expire(now())
      await reports.settle(charged)
    }

    /** Gives the same answer whether or not the report existed, so that nobody can probe for addresses. */
    async function remove({ input }: CallOf<'deleteReport' | 'deleteReportForm'>) {
      const { rid } = input.params
      if (rid === SAMPLE) throw new NotFound('The sample report is made for each request, so it cannot be deleted.')
      await reports.remove(rid)
      return new Reply({ rid, deleted: true as const }, { headers: PRIVATE_HEADERS })
    }

    return {
      jobs: [{ name: 'expire', everySeconds: EXPIRE_SECONDS, run: expire }],
      handlers: {
        auditBacktest,
        async submitAudit(call) {
          const { rid, report_url, verdict, reasons, summary } = await auditBacktest(call)
          return new Reply({ rid, report_url, verdict, reasons, summary }, { headers: PRIVATE_HEADERS })
        },
        deleteReport: remove,
        deleteReportForm: remove,
        async getAuditReport({ input, ...call }) {
          if (input.query.rid === SAMPLE) return sampleReport({ ...call, unusableReason })
          const report = await reports.find(input.query.rid, now())
          if (report === null)
            throw new NotFound(
              'This report does not exist, or it was deleted. Reports of the free form are kept for 30 days, the newest 10 of each network address; paid ones until they are deleted, those of a plan as long as they are among the newest 200 of its wallet.',
            )
          return JSON.parse(report) as Report
        },
        getAuditPresets: () => ({
          presets: Object.entries(PRESETS).map(([preset, terms]) => ({
            preset: preset as PresetName,
            cost_per_side_bps: costPerSide(terms),
            half_spread_bps: terms.halfSpread,
            slippage_bps: terms.slippage,
            commission_bps: terms.commission,
            basis: terms.basis,
          })),
        }),
        getAuditMethod: methodology,
      },
    }
  },
})
