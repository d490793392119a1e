/**
 * The wallet that the pages of a sandbox lend: the sandbox's buyer, asked as a browser wallet is (EIP-1193). It signs
 * payments of test money to the sandbox's own payee and nothing else, and its key stays here.
 */
import secp256k1 from 'secp256k1'
import { hexToBytes } from 'viem/utils'
import type { Hex } from '../config/networks.ts'
import { InvalidInput } from '../errors.ts'
import { createDigest } from '../methods/exact-evm/authorization-check.ts'
import type { Authorization } from '../methods/exact-evm/eip3009.ts'
import { createRpc } from '../methods/exact-evm/nodes/rpc.ts'
import type { Logger } from '../plugin/plugin.ts'
import { isObject, parseJson } from '../validation/json.ts'
import { fund, type Sandbox } from './sandbox.ts'

/** Answers a request `{ method, params }`. Rejects with InvalidInput if this wallet does not take it. */
export type TestWallet = (request: unknown) => Promise<unknown>

const RPC_SECONDS = 10
const FIELDS = {
  from: /^0x[0-9a-f]{40}$/i,
  to: /^0x[0-9a-f]{40}$/i,
  value: /^\d{1,30}$/,
  validAfter: /^\d{1,15}$/,
  validBefore: /^\d{1,15}$/,
  nonce: /^0x[0-9a-f]{64}$/i,
} as const

/** Creates the wallet. It is topped up when a page opens it and it holds little. */
export function createTestWallet({ rpcUrl, network, buyer, payTo }: Sandbox, log: Logger): TestWallet {
  const rpc = createRpc(rpcUrl, RPC_SECONDS)
  // It has the domain of the sandbox's own token, whatever domain a request names.
  const digestOf = createDigest(network)
  const secret = hexToBytes(buyer.privateKey)
  const sign = (authorization: Authorization): Hex => {
    const { signature, recid } = secp256k1.ecdsaSign(digestOf(authorization), secret)
    return `0x${Buffer.from([...signature, 27 + recid]).toString('hex')}`
  }
  return async (request) => {
    const { method, params } = isObject(request) ? request : {}
    if (method === 'eth_chainId') return `0x${network.chainId.toString(16)}`
    if (method === 'eth_requestAccounts') {
      await fund(rpc, network, buyer.address, log)
      return [buyer.address]
    }
    if (method !== 'eth_signTypedData_v4' || !Array.isArray(params))
      throw new InvalidInput('The test wallet takes eth_requestAccounts, eth_chainId and eth_signTypedData_v4.')
    const authorization = authorizationOf(params[1])
    if (authorization?.to.toLowerCase() !== payTo.toLowerCase())
      throw new InvalidInput('The test wallet signs only payments to this sandbox: TransferWithAuthorization.')
    return sign(authorization)
  }
}

/** Reads the message of EIP-712 data; null if it is not a transfer. */
function authorizationOf(text: unknown): Authorization | null {
  const { value } = parseJson(String(text))
  const message = isObject(value) ? value['message'] : null
  if (!isObject(message)) return null
  const isTransfer = Object.entries(FIELDS).every(([name, pattern]) => pattern.test(String(message[name])))
  if (!isTransfer) return null
  const { from, to, value: amount, validAfter, validBefore, nonce } = message
  return {
    from: from as Hex,
    to: to as Hex,
    value: BigInt(String(amount)),
    validAfter: BigInt(String(validAfter)),
    validBefore: BigInt(String(validBefore)),
    nonce: nonce as Hex,
  }
}
