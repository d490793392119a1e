/** The pages of the audit: the form and the reports. They get their data from the audit plugin. */
import { definePlugin, Reply } from 'tollgate/plugin'
import { PRIVATE_HEADERS } from '../lib/private-headers.ts'
import { problemMessage } from './messages.ts'
import { reportPage } from './report-page.ts'

export default definePlugin({
  name: 'audit-pages',
  setup: () => ({
    handlers: {
      async getAuditTool({ ask, input }) {
        const { presets } = await ask('getAuditPresets')
        return { problem: problemMessage(input.query.err), deleted: input.query.deleted === 1, presets }
      },
      async getReport({ ask, input }) {
        const report = await ask('getAuditReport', { query: { rid: input.params.rid } })
        return new Reply(reportPage(report), { headers: PRIVATE_HEADERS })
      },
      async downloadReport({ ask, input }) {
        const { rid } = input.params
        const report = await ask('getAuditReport', { query: { rid } })
        const disposition = `attachment; filename="audit-${rid}.json"`
        return new Reply(report, { headers: { ...PRIVATE_HEADERS, 'content-disposition': disposition } })
      },
    },
  }),
})
