/** Honest clients on slow lines, for `npm run lab -- connections`. */
import { request } from 'node:http'
import { ledgerForm } from '../ledger-form.ts'
import { openSlowLine } from '../../../support/connections/slow-line.ts'
import { UPLOADS } from '../../../support/connections/uploads.ts'

/** Result of an upload: a status, or why there is none. */
export interface Uploaded {
  readonly client: string
  readonly outcome: string
  readonly seconds: number
  readonly isGood: boolean
}

export interface HonestCase {
  readonly name: string
  /** Runs it on a gateway on this port. */
  readonly run: (port: number) => Promise<readonly Uploaded[]>
}

const REFUSED = { bytes: 40_000_000, megabits: 2 }
const FREE = { rows: 200_000, megabits: 0.2 }

export const HONEST: readonly HonestCase[] = [
  {
    name: `honest: 40 MB without a payment, ${REFUSED.megabits} Mbit/s`,
    run(port) {
      const body = Buffer.from(JSON.stringify('x'.repeat(REFUSED.bytes - 2)))
      const uploads = Object.entries(UPLOADS).map(([client, upload]) =>
        uploaded(client, 402, port, REFUSED.megabits, (base) => upload(`${base}/v1/audit`, body)),
      )
      return Promise.all(uploads)
    },
  },
  {
    name: `honest: ${FREE.rows} rows (15 MB) to the free audit, ${1000 * FREE.megabits} kbit/s`,
    run: async (port) => [await uploaded('a phone', 200, port, FREE.megabits, sendForm)],
  },
]

/** Uploads on a slow line of its own. */
async function uploaded(
  client: string,
  expected: number,
  port: number,
  megabits: number,
  upload: (base: string) => Promise<number>,
): Promise<Uploaded> {
  const line = await openSlowLine(port, megabits)
  const began = performance.now()
  const outcome = await upload(`http://127.0.0.1:${line.port}`).catch((error: Error) => error.message)
  const seconds = (performance.now() - began) / 1000
  await line.close()
  return { client, outcome: String(outcome), seconds, isGood: outcome === expected }
}

function sendForm(base: string): Promise<number> {
  const { type, body } = ledgerForm(FREE.rows)
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': type, 'content-length': String(body.length) }
    const outgoing = request(`${base}/audit`, { method: 'POST', headers }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode ?? 0))
    })
    outgoing.on('error', reject).end(body)
  })
}
