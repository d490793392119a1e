/** The reference x402 facilitator (@x402/core, @x402/evm) over HTTP on a local chain. */
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { x402Facilitator } from '@x402/core/facilitator'
import type { PaymentPayload, PaymentRequirements } from '@x402/core/types'
import { toFacilitatorEvmSigner } from '@x402/evm'
import { ExactEvmScheme } from '@x402/evm/exact/facilitator'
import { ExactEvmSchemeV1 } from '@x402/evm/exact/v1/facilitator'
import { createWalletClient, http, nonceManager, publicActions } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { baseSepolia } from 'viem/chains'
import { newSettleKey } from './payments.ts'
import type { TestChain } from './chain.ts'

export interface Facilitator {
  readonly url: string
  close(): Promise<void>
}

/**
 * Starts the reference facilitator.
 * @param versions of x402 that it supports
 * @param admits whether it takes a request; it answers others with 401
 */
export async function startFacilitator(
  chain: TestChain,
  versions: readonly (1 | 2)[] = [1, 2],
  admits: (request: IncomingMessage) => Promise<boolean> = async () => true,
): Promise<Facilitator> {
  const account = privateKeyToAccount(await newSettleKey(chain), { nonceManager })
  const transport = http(chain.rpcUrl)
  const client = createWalletClient({ account, chain: baseSepolia, transport, pollingInterval: 50 }).extend(
    publicActions,
  )
  const signer = toFacilitatorEvmSigner({
    address: account.address,
    readContract: (call) => client.readContract(call),
    verifyTypedData: (call) => client.verifyTypedData(call as never),
    writeContract: (call) => client.writeContract({ ...call, account, chain: baseSepolia } as never),
    sendTransaction: (call) => client.sendTransaction({ ...call, account, chain: baseSepolia } as never),
    waitForTransactionReceipt: (call) => client.waitForTransactionReceipt(call),
    getCode: (call) => client.getCode(call),
  })
  const facilitator = new x402Facilitator()
  if (versions.includes(2)) facilitator.register('eip155:84532', new ExactEvmScheme(signer))
  if (versions.includes(1)) facilitator.registerV1('base-sepolia' as never, new ExactEvmSchemeV1(signer))

  const answer = async (path: string, body: string): Promise<unknown> => {
    if (path === '/supported') return facilitator.getSupported()
    const { paymentPayload, paymentRequirements } = JSON.parse(body) as {
      paymentPayload: PaymentPayload
      paymentRequirements: PaymentRequirements
    }
    return path === '/settle'
      ? facilitator.settle(paymentPayload, paymentRequirements)
      : facilitator.verify(paymentPayload, paymentRequirements)
  }
  const server = createServer((request, response) => {
    const answered = async () => {
      const body = await read(request)
      if (await admits(request)) return answer(request.url ?? '/', body)
      response.statusCode = 401
      return { error: 'unauthorized' }
    }
    answered().then(
      (value) =>
        response.writeHead(response.statusCode, { 'content-type': 'application/json' }).end(JSON.stringify(value)),
      (error: unknown) => response.writeHead(500).end(JSON.stringify({ error: String(error) })),
    )
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

async function read(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}
