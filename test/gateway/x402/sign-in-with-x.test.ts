import { createSIWxMessage } from '@x402/extensions/sign-in-with-x'
import { expect } from 'chai'
import fc from 'fast-check'
import { getAddress } from 'viem'
import { createSignInChallenge, isRefusal, readSignIn, signInText } from '../../../gateway/x402/sign-in-with-x.ts'

const baseUrl = 'https://shop.example'
const now = (): Date => new Date('2026-11-23T12:00:00.000Z')
const parts = { baseUrl, now }

const hex = (bytes: number): fc.Arbitrary<string> =>
  fc.uint8Array({ minLength: bytes, maxLength: bytes }).map((array) => `0x${Buffer.from(array).toString('hex')}`)
const LINE = fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9 .,:'-]{0,40}$/)

/** A message that this service accepts, with or without the fields that may be left out. */
const MESSAGE = fc.record(
  {
    domain: fc.constant('shop.example'),
    address: hex(20),
    uri: fc.stringMatching(/^[a-z0-9/?=-]{0,30}$/).map((path) => `${baseUrl}/${path}`),
    version: fc.constant('1'),
    chainId: fc.integer({ min: 1, max: 2 ** 31 }).map((id) => `eip155:${id}`),
    type: fc.constant('eip191' as const),
    nonce: fc.stringMatching(/^[A-Za-z0-9]{8,64}$/),
    issuedAt: fc.constantFrom('2026-11-23T12:00:00.000Z', '2026-11-23T11:58:00Z', '2026-11-23T13:00:00+01:00'),
    signature: hex(65),
    statement: LINE,
    expirationTime: fc.constant('2026-11-23T12:05:00Z'),
    notBefore: fc.constant('2026-11-23T11:00:00Z'),
    requestId: fc.stringMatching(/^[A-Za-z0-9]{1,20}$/),
    resources: fc.array(fc.webUrl(), { maxLength: 3 }),
  },
  {
    requiredKeys: ['domain', 'address', 'uri', 'version', 'chainId', 'type', 'nonce', 'issuedAt', 'signature'],
  },
)

describe('a sign-in with a wallet', () => {
  it('is read as the text that the stock client signs', () => {
    fc.assert(
      fc.property(MESSAGE, (message) => {
        const read = readSignIn(parts, Buffer.from(JSON.stringify(message)).toString('base64'))
        if (isRefusal(read)) throw new Error(`${read.reason}: ${JSON.stringify(message)}`)
        const stock = createSIWxMessage(message, getAddress(message.address))
        expect(signInText(read)).to.equal(stock)
      }),
    )
  })

  it('is not read if a field has a line break, which would make it the text of another message', () => {
    fc.assert(
      fc.property(
        MESSAGE,
        fc.constantFrom('statement', 'uri', 'nonce', 'issuedAt', 'requestId', 'resources'),
        fc.constantFrom('\n', '\r', '\u2028', '\u0000'),
        (message, field, breakingCharacter) => {
          const text = `${field === 'uri' ? `${baseUrl}/` : 'a'}${breakingCharacter}Nonce: aaaaaaaa`
          const changed = { ...message, [field]: field === 'resources' ? [text] : text }
          expect(readSignIn(parts, changed)).to.include({ reason: 'invalid_siwx_payload' })
        },
      ),
    )
  })

  it('is refused without an exception, whatever was sent', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.base64String(), fc.dictionary(fc.string(), fc.jsonValue())), (sent) => {
        expect(readSignIn(parts, sent)).to.include({ reason: 'invalid_siwx_payload' })
      }),
    )
  })

  it('is asked for with a challenge of its own each time, valid for five minutes', () => {
    const challenge = createSignInChallenge(parts, [{ caip2: 'eip155:8453' }, { caip2: 'eip155:84532' }])
    const [first, second] = [challenge(`${baseUrl}/v1/a`), challenge(`${baseUrl}/v1/a`)] as unknown as {
      info: Record<string, string>
    }[]
    expect(first).to.deep.include({
      supportedChains: [
        { chainId: 'eip155:8453', type: 'eip191' },
        { chainId: 'eip155:84532', type: 'eip191' },
      ],
    })
    expect(first?.info).to.include({
      domain: 'shop.example',
      uri: `${baseUrl}/v1/a`,
      version: '1',
      issuedAt: '2026-11-23T12:00:00.000Z',
      expirationTime: '2026-11-23T12:05:00.000Z',
    })
    expect(first?.info['nonce']).to.match(/^[0-9a-f]{32}$/)
    expect(first?.info['nonce']).not.to.equal(second?.info['nonce'])
  })
})
