import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { createLog } from '../../gateway/observe/log.ts'
import { ask, buy, json } from '../support/agent.ts'
import { openGateway, until } from '../support/gateway.ts'

const TOKEN = 'correct-horse-battery'
const bearer = { authorization: `Bearer ${TOKEN}` }

interface SentAlert {
  readonly event: string
  readonly message: string
  readonly details: { readonly about: readonly string[] }
}

describe('an alarm', () => {
  it('appears in the log, the webhook, the metrics and the console', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'tollgate-alarm-'))
    const alerts: SentAlert[] = []
    let received: () => void = () => {}
    const delivered = new Promise<void>((resolve) => (received = resolve))
    const webhook = createServer((request, response) => {
      let text = ''
      request.on('data', (chunk: Buffer) => (text += chunk.toString()))
      request.on('end', () => {
        alerts.push(JSON.parse(text) as SentAlert)
        response.end('{}')
        received()
      })
    })
    await new Promise<void>((resolve) => webhook.listen(0, '127.0.0.1', resolve))
    const address = `http://127.0.0.1:${(webhook.address() as AddressInfo).port}/`
    try {
      // Without a webhook: on a busy machine its first check may be late enough to see the debt.
      const first = await openGateway({ DATA_DIR: folder }, { inMemory: false })
      await buy(`${first.url}/v1/echo/a`, first.wallet)
      const [sold] = await first.gateway.journal.list({ states: ['settled'], limit: 1 })
      const key = sold?.key ?? ''
      await first.gateway.journal.owed(key, 1, 'the answer is lost')
      await first.close()

      const lines: string[] = []
      const log = createLog('warn', { write: (line: string) => void lines.push(line) })
      const environment = { DATA_DIR: folder, OPERATOR_TOKEN: TOKEN, ALERT_WEBHOOK_URL: address }
      const second = await openGateway(environment, { inMemory: false, log })
      await delivered
      const [alert] = alerts
      expect(alert).to.include({ event: 'ledger.owed', message: '1 payment is settled and cannot be delivered' })
      expect(alert?.details.about).to.deep.equal([key])
      expect(lines.map((line) => (JSON.parse(line) as { event?: string }).event)).to.include('ledger.owed')
      const { alarms } = (await json(await ask(`${second.url}/operator`, { headers: bearer }))) as { alarms: object[] }
      expect(alarms).to.have.length(1)
      const page = await ask(`${second.url}/operator`, { headers: { ...bearer, accept: 'text/html' } })
      expect(await page.text()).to.contain('1 active alarm')
      const sample = 'tollgate_alarm{alarm="ledger.owed"} 1'
      // The gauge is set when the check is complete, shortly after the webhook received the alert.
      const metrics = async () => (await ask(`${second.url}/metrics`, { headers: bearer })).text()
      await until(async () => (await metrics()).includes(sample))
      await second.close()
    } finally {
      webhook.close()
      rmSync(folder, { recursive: true, force: true })
    }
  })
})
