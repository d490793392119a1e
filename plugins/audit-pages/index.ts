/** The pages of the audit: the form and the reports. They get their data from the audit plugin. */
import { type Call, definePlugin, Reply } from 'tollgate/plugin'
import { PRIVATE_HEADERS } from '../lib/private-headers.ts'
import { problemMessage } from './messages.ts'
import { reportPage } from './report-page.ts'

const NOTHING = { params: {}, query: {}, body: undefined } as const

interface ToolQuery {
  readonly err: string
  readonly deleted: number
}

export default definePlugin({
  name: 'audit-pages',
  setup: () => ({
    handlers: {
      async getAuditTool({ ask, input }: Call<{ query: ToolQuery }>) {
        const { presets } = await ask('getAuditPresets', NOTHING)
        return { problem: problemMessage(input.query.err), deleted: input.query.deleted === 1, presets }
      },
      async getReport({ ask, input }: Call<{ params: { rid: string } }>) {
        const report = await ask('getAuditReport', { ...NOTHING, query: { rid: input.params.rid } })
        return new Reply(reportPage(report), { headers: PRIVATE_HEADERS })
      },
      async downloadReport({ ask, input }: Call<{ params: { rid: string } }>) {
        const { rid } = input.params
        const report = await ask('getAuditReport', { ...NOTHING, query: { rid } })
        const disposition = `attachment; filename="audit-${rid}.json"`
        return new Reply(report, { headers: { ...PRIVATE_HEADERS, 'content-disposition': disposition } })
      },
    },
  }),
})
