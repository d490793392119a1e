/** Serves the wallet that the pages of a sandbox lend. It appears in no document, and does not exist outside the sandbox. */
import { ServiceError } from '../errors.ts'
import type { TestWallet } from '../sandbox/test-wallet.ts'
import type { Headers } from './headers.ts'
import { readBody } from './request-body.ts'
import type { Visit } from './request.ts'

export const TEST_WALLET = '/sandbox/wallet'

const RULES = { bodyMedia: ['application/json'], maxBytes: 10_000 }

/** Answers `{ result }`. Throws ServiceError for a page of another site, which must not use the wallet. */
export async function answerTestWallet(
  wallet: TestWallet,
  { id, request, response }: Visit,
  headers: Headers,
): Promise<void> {
  const site = request.headers['sec-fetch-site']
  if (site !== undefined && site !== 'same-origin')
    throw new ServiceError('forbidden', 'The test wallet is for the pages of this gateway.')
  const result = await wallet(await readBody(request, RULES))
  const { 'access-control-allow-origin': _origin, ...own } = headers
  const type = 'application/json; charset=utf-8'
  response.writeHead(200, { ...own, 'content-type': type, 'cache-control': 'no-store', 'x-call-id': id })
  response.end(JSON.stringify({ result }))
}
