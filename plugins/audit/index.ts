/** The backtest audit: takes a trade ledger, returns a report, and stores it at an address that nobody can guess. */
import { type Call, definePlugin, hasUnreadBody, NotFound, Reply, Unavailable } from 'tollgate/plugin'
import { type DataSettings, dataSettings } from '../lib/feeds/data-settings.ts'
import { PRIVATE_HEADERS } from '../lib/private-headers.ts'
import { type Audit, audit, type AuditContext, summaryOf } from './audit.ts'
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

/** How often free reports that are too old are deleted. */
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
  ...result,
})

const filesOf = ({ file, bars }: Form): readonly Buffer[] => [file.bytes, ...(bars ? [bars.bytes] : [])]

/** Whose share of the stored reports a call uses. */
function holderOf({ access, client }: Pick<Call, 'access' | 'client'>): Holder {
  if (access.kind === 'free') return { client }
  return { wallet: access.kind === 'payment' ? access.payer : access.subject }
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
    const { db, work, now } = context
    const reports = openReportStore(db)
    const unusableReason = unusableBarsReason(dataSettings(context))

    async function run(call: Call<{ body: Form }>): Promise<Audit> {
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

    async function auditBacktest(call: Call<{ body: Form }>): Promise<Report> {
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

    /** Gives the same answer whether or not the report existed, so that nobody can probe for addresses. */
    async function remove({ input }: Call<{ params: { rid: string } }>) {
      const { rid } = input.params
      if (rid === SAMPLE) throw new NotFound('The sample report is made for each request, so it cannot be deleted.')
      await reports.remove(rid)
      return new Reply({ rid, deleted: true as const }, { headers: PRIVATE_HEADERS })
    }

    return {
      jobs: [{ name: 'expire', everySeconds: EXPIRE_SECONDS, run: () => reports.expire(now()) }],
      handlers: {
        auditBacktest,
        async submitAudit(call: Call<{ body: Form }>) {
          const { rid, report_url, verdict, reasons, summary } = await auditBacktest(call)
          return new Reply({ rid, report_url, verdict, reasons, summary }, { headers: PRIVATE_HEADERS })
        },
        deleteReport: remove,
        deleteReportForm: remove,
        async getAuditReport({ input, ...call }: Call<{ query: { rid: string } }>): Promise<Report> {
          if (input.query.rid === SAMPLE) return sampleReport({ ...call, unusableReason })
          const report = await reports.find(input.query.rid, now())
          if (report === null)
            throw new NotFound(
              'This report does not exist, or it was deleted. Reports of the free form are kept for 30 days, the newest 10 of each network address; paid ones until they are deleted, the newest 200 of each wallet.',
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
