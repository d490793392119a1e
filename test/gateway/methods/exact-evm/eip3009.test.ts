import { expect } from 'chai'
import * as fc from 'fast-check'
import { encodeErrorResult, encodeEventTopics, encodeFunctionData, parseAbi } from 'viem'
import type { Hex } from '../../../../gateway/config/networks.ts'
import { refusalOf, revertText, settleData, stateData, TOPICS } from '../../../../gateway/methods/exact-evm/eip3009.ts'

const abi = parseAbi([
  'function transferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce,uint8 v,bytes32 r,bytes32 s)',
  'function transferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce,bytes signature)',
  'function authorizationState(address,bytes32) view returns (bool)',
  'event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)',
  'event AuthorizationCanceled(address indexed authorizer, bytes32 indexed nonce)',
  'event Transfer(address indexed from, address indexed to, uint256 value)',
  'error Error(string)',
])

const bytes = (least: number, most = least) =>
  fc.uint8Array({ minLength: least, maxLength: most }).map((each): Hex => `0x${Buffer.from(each).toString('hex')}`)
const number = fc.bigInt({ min: 0n, max: (1n << 256n) - 1n })
const head = fc.tuple(bytes(20), bytes(20), number, number, number, bytes(32))

describe('the EIP-3009 calls of the token', () => {
  it('encode settlements as the ABI defines them, for keys and for contract wallets', () => {
    fc.assert(
      fc.property(head, fc.oneof(bytes(65), bytes(1, 300)), (parts, signature) => {
        const [from, to, value, validAfter, validBefore, nonce] = parts
        const data = settleData({ from, to, value, validAfter, validBefore, nonce, signature })
        const [r, s] = [`0x${signature.slice(2, 66)}`, `0x${signature.slice(66, 130)}`] as [Hex, Hex]
        const expected =
          signature.length === 132
            ? encodeFunctionData({
                abi,
                functionName: 'transferWithAuthorization',
                args: [...parts, Number(`0x${signature.slice(130)}`), r, s],
              })
            : encodeFunctionData({ abi, functionName: 'transferWithAuthorization', args: [...parts, signature] })
        expect(data).to.equal(expected)
      }),
    )
  })

  it('encode authorizationState and know the topics of the events', () => {
    const [authorizer, nonce]: [Hex, Hex] = [`0x${'ab'.repeat(20)}`, `0x${'cd'.repeat(32)}`]
    expect(stateData(authorizer, nonce)).to.equal(
      encodeFunctionData({ abi, functionName: 'authorizationState', args: [authorizer, nonce] }),
    )
    const topic = (eventName: 'AuthorizationUsed' | 'AuthorizationCanceled' | 'Transfer') =>
      encodeEventTopics({ abi, eventName })[0]
    expect(TOPICS.used).to.equal(topic('AuthorizationUsed'))
    expect(TOPICS.canceled).to.equal(topic('AuthorizationCanceled'))
    expect(TOPICS.transfer).to.equal(topic('Transfer'))
  })

  it('decode the text of every revert', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const data = encodeErrorResult({ abi, errorName: 'Error', args: [text] })
        expect(revertText(data)).to.equal(Buffer.from(text).toString())
      }),
    )
    for (const data of ['0x', '0x08c379a0', null, undefined, 7, '0x4e487b71'.padEnd(74, '0')])
      expect(revertText(data)).to.equal(null)
  })

  it('translate revert texts to x402 reasons', () => {
    const reasons = {
      'ERC20: transfer amount exceeds balance': 'insufficient_funds',
      'FiatTokenV2: authorization is used or canceled': 'invalid_transaction_state',
      'FiatTokenV2: authorization is expired': 'invalid_exact_evm_payload_authorization_valid_before',
      'FiatTokenV2: authorization is not yet valid': 'invalid_exact_evm_payload_authorization_valid_after',
      'FiatTokenV2: invalid signature': 'invalid_exact_evm_payload_signature',
      "ECRecover: invalid signature 's' value": 'invalid_exact_evm_payload_signature',
      'Blacklistable: account is blacklisted': 'invalid_transaction_state',
      'Pausable: paused': 'invalid_transaction_state',
      'something new': 'invalid_transaction_state',
    }
    for (const [text, reason] of Object.entries(reasons)) expect(refusalOf(text).reason).to.equal(reason)
  })
})
