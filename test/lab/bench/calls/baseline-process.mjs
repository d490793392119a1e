/**
 * The servers that `npm run lab -- bench` compares the gateway with. Arguments: the kind, a port, and options in JSON.
 *
 * - `plain`: node:http that sends prepared answers, one per path.
 * - `express`: Express with one JSON route.
 * - `x402`: Express with `@x402/express`. Options name a facilitator; without one it has its own in the process, which
 *   checks signatures for real. Reads of the chain and the settlement are stubs that answer at once.
 * - `facilitator`: an HTTP facilitator that says yes to everything.
 */
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'

const [kind, port, text = '{}'] = process.argv.slice(2)
const options = JSON.parse(text)
const TRANSACTION = `0x${'ab'.repeat(32)}`

/** Sends the answers of the file `answers`: status, headers and body by path. */
function createPlain({ answers: file }) {
  const answers = new Map(
    JSON.parse(readFileSync(file, 'utf8')).map(({ path, status, headers, body }) => [
      path,
      { status, headers, body: Buffer.from(body, 'base64') },
    ]),
  )
  return createServer((request, response) => {
    const { status, headers, body } = answers.get(request.url) ?? { status: 404, headers: {}, body: '' }
    response.writeHead(status, headers)
    response.end(body)
  })
}

async function createExpress({ answer }) {
  const { default: express } = await import('express')
  const app = express()
  app.get('/answer', (_, response) => response.json(answer))
  return createServer(app)
}

async function createX402({ network, payTo, price, answer, facilitator: url }) {
  const { default: express } = await import('express')
  const { paymentMiddleware, x402ResourceServer } = await import('@x402/express')
  const { ExactEvmScheme } = await import('@x402/evm/exact/server')
  const { HTTPFacilitatorClient } = await import('@x402/core/server')
  const facilitator = url ? new HTTPFacilitatorClient({ url }) : await createOwnFacilitator(network, payTo)
  const server = new x402ResourceServer(facilitator).register(network.caip2, new ExactEvmScheme())
  const accepts = { scheme: 'exact', price, network: network.caip2, payTo, maxTimeoutSeconds: 300 }
  const app = express()
  app.use(paymentMiddleware({ 'GET /answer': { accepts, description: 'A small answer' } }, server))
  app.get(['/answer', '/free'], (_, response) => response.json(answer))
  return createServer(app)
}

/** The facilitator of `@x402/core` in the process, on a stub of a chain where the asset is the only contract. */
async function createOwnFacilitator({ caip2, asset }, address) {
  const { x402Facilitator } = await import('@x402/core/facilitator')
  const { toFacilitatorEvmSigner } = await import('@x402/evm')
  const { ExactEvmScheme } = await import('@x402/evm/exact/facilitator')
  const { verifyTypedData } = await import('viem/actions')
  const signer = toFacilitatorEvmSigner({
    address,
    readContract: async () => undefined,
    verifyTypedData,
    writeContract: async () => TRANSACTION,
    sendTransaction: async () => TRANSACTION,
    waitForTransactionReceipt: async () => ({ status: 'success' }),
    getCode: async ({ address: one }) => (one.toLowerCase() === asset.toLowerCase() ? '0x60' : '0x'),
  })
  const facilitator = new x402Facilitator().register(caip2, new ExactEvmScheme(signer))
  return {
    verify: (payload, requirements) => facilitator.verify(payload, requirements),
    settle: (payload, requirements) => facilitator.settle(payload, requirements),
    getSupported: async () => facilitator.getSupported(),
  }
}

function createFacilitator({ network, payTo }) {
  const answers = {
    '/supported': {
      kinds: [{ x402Version: 2, scheme: 'exact', network: network.caip2 }],
      extensions: [],
      signers: { 'eip155:*': [payTo] },
    },
    '/verify': { isValid: true, payer: payTo },
    '/settle': { success: true, transaction: TRANSACTION, network: network.caip2, payer: payTo },
  }
  return createServer((request, response) => {
    request.resume()
    request.once('end', () => {
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(JSON.stringify(answers[request.url]))
    })
  })
}

const servers = { plain: createPlain, express: createExpress, x402: createX402, facilitator: createFacilitator }
const server = await servers[kind](options)
server.listen(Number(port), '127.0.0.1')
