/** Whether a Reply can be sent as it is: found out while nothing is charged yet, not when it leaves. */
import { validateHeaderName, validateHeaderValue } from 'node:http'
import type { Reply } from '../plugin/plugin.ts'

/** Headers that the transport and the payment write themselves. */
const OURS =
  /^(connection|content-encoding|content-length|keep-alive|te|trailer|transfer-encoding|upgrade|x-call-id|x-payment-response)$|^(access-control|payment|proxy)-/i

/** Throws where the status is none of HTTP, or a header is malformed or not a product's to write. */
export function assertSendable({ status, headers }: Reply): void {
  if (!Number.isInteger(status) || status < 200 || status > 599) throw new Error(`${status} is no status of an answer`)
  for (const [name, value] of Object.entries(headers)) {
    validateHeaderName(name)
    validateHeaderValue(name, value)
    if (OURS.test(name)) throw new Error(`the header ${name} is not a product's to write`)
  }
}
