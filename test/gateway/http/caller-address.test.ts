/** Addresses of callers: every spelling of an IPv6 address is the same address, and counts for the same place. */
import { expect } from 'chai'
import fc from 'fast-check'
import { type CallerAddress, CallerAddresses, isLoopback, placeOf } from '../../../gateway/http/caller-address.ts'
import { createLog } from '../../../gateway/observe/log.ts'

function callersBehind(...trustedProxies: string[]): CallerAddresses {
  return new CallerAddresses({ trustedProxies, baseUrl: 'https://gate.test', log: createLog('silent') })
}

/** The caller of a request that the proxy 192.0.2.1 passes on. */
function forwarded(header: string, callers = callersBehind('192.0.2.1')): CallerAddress {
  return callers.of({ headers: { 'x-forwarded-for': header }, socket: { remoteAddress: '192.0.2.1' } as never })
}

const hex = (group: number, digits: number, isUpper: boolean): string => {
  const text = group.toString(16).padStart(digits, '0')
  return isUpper ? text.toUpperCase() : text
}

/** How an address may be written: digits and case of each group, which zeros "::" stands for, an IPv4 tail, a zone. */
const spellings = fc.record({
  digits: fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 8, maxLength: 8 }),
  upper: fc.array(fc.boolean(), { minLength: 8, maxLength: 8 }),
  run: fc.nat(7),
  runLength: fc.nat(7),
  hasTail: fc.boolean(),
  zone: fc.constantFrom('', '%eth0', '%1'),
})
type Spelling = typeof spellings extends fc.Arbitrary<infer Value> ? Value : never

function spell(groups: readonly number[], { digits, upper, run, runLength, hasTail, zone }: Spelling): string {
  const written = groups.map((group, at) => hex(group, digits[at] as number, upper[at] as boolean))
  const [high = 0, low = 0] = groups.slice(6)
  if (hasTail) written.splice(6, 2, [high >> 8, high & 255, low >> 8, low & 255].join('.'))
  const length = Math.min(runLength + 1, (hasTail ? 6 : 8) - run)
  const isZeros = length > 0 && groups.slice(run, run + length).every((group) => group === 0)
  const text = isZeros
    ? `${written.slice(0, run).join(':')}::${written.slice(run + length).join(':')}`
    : written.join(':')
  return text + zone
}

/** Groups with many zeros, as addresses have them. */
const addresses = fc.array(fc.oneof(fc.constant(0), fc.nat(0xffff)), { minLength: 8, maxLength: 8 })
const mapped = fc.tuple(fc.nat(0xffff), fc.nat(0xffff)).map((tail) => [0, 0, 0, 0, 0, 0xffff, ...tail])

describe('the address of a caller', () => {
  it('is written in one way, however it was sent', () => {
    for (const [sent, address] of [
      ['203.0.113.7', '203.0.113.7'],
      ['203.0.113.7:4711', '203.0.113.7'],
      ['2001:0DB8:0000:0000:0001:0000:0000:0001', '2001:db8::1:0:0:1'],
      ['[2001:DB8::1]', '2001:db8::1'],
      ['[2001:db8:0::0:1]:443', '2001:db8::1'],
      ['1:0:2:3:4:5:6:7', '1:0:2:3:4:5:6:7'],
      ['fe80::1%eth0', 'fe80::1'],
      ['::ffff:cb00:7107', '203.0.113.7'],
      ['0:0:0:0:0:FFFF:203.0.113.7', '203.0.113.7'],
      ['[::FFFF:203.0.113.7]:443', '203.0.113.7'],
      ['0:0:0:0:0:0:0:1', '::1'],
      // Another network than that of IPv4: it could also claim to be this machine.
      ['64:ff9b::127.0.0.1', '64:ff9b::7f00:1'],
    ] as const)
      expect(forwarded(sent), sent).to.deep.equal({ address, isKnown: true, isShared: false })
  })

  it('has one text and one place in every spelling', () => {
    fc.assert(
      fc.property(fc.oneof(addresses, mapped), spellings, spellings, (groups, one, other) => {
        const [first, second] = [spell(groups, one), spell(groups, other)]
        expect(forwarded(first), `${first} ${second}`).to.deep.equal(forwarded(second))
        expect(placeOf(first), `${first} ${second}`).to.equal(placeOf(second))
        expect(placeOf(forwarded(first).address)).to.equal(placeOf(first))
        expect(isLoopback(first)).to.equal(isLoopback(second))
      }),
      { numRuns: 500 },
    )
  })

  it('has the place of its /64 and no other', () => {
    const network = fc.array(fc.oneof(fc.constant(0), fc.nat(0xffff)), { minLength: 4, maxLength: 4 })
    fc.assert(
      fc.property(network, network, network, spellings, spellings, (one, other, host, first, second) => {
        const isSame = one.join(':') === other.join(':')
        // All addresses of ::/64 but two kinds are one place.
        fc.pre(host[0] !== 0)
        expect(placeOf(spell([...one, ...host], first))).to.equal(placeOf(spell([...one, 1, 2, 3, 4], second)))
        expect(placeOf(spell([...one, ...host], first)) === placeOf(spell([...other, ...host], second))).to.equal(
          isSame,
        )
      }),
      { numRuns: 500 },
    )
  })

  it('is that of this machine in every spelling, and in no text that only begins like it', () => {
    const ours = [
      '127.0.0.1',
      '127.255.0.9',
      '::1',
      '0:0:0:0:0:0:0:1',
      '::ffff:127.0.0.1',
      '::ffff:7f00:1',
      '::FFFF:7F01:2',
    ]
    for (const address of ours)
      expect([isLoopback(address), placeOf(address)], address).to.deep.equal([true, 'loopback'])
    const others = [
      '127.evil',
      '127.0.0.1.example',
      '127.1',
      'localhost',
      '::ffff:127.evil',
      '::',
      '::2',
      '64:ff9b::7f00:1',
    ]
    for (const text of others)
      expect([isLoopback(text), placeOf(text) === 'loopback'], text).to.deep.equal([false, false])
  })

  it('of a proxy may be named in any spelling, or as a range of any', () => {
    for (const named of ['2001:0DB8:0::1', '2001:DB8::/32', '::ffff:c000:201', '0:0:0:0:0:FFFF:192.0.2.0/120'])
      for (const [peer, proxies] of [
        ['2001:db8::1', named.startsWith('2001')],
        ['192.0.2.1', !named.startsWith('2001')],
        ['::ffff:192.0.2.1', !named.startsWith('2001')],
        ['198.51.100.1', false],
      ] as const) {
        const request = { headers: { 'x-forwarded-for': '203.0.113.7' }, socket: { remoteAddress: peer } as never }
        expect(callersBehind(named).of(request).isKnown, `${named} ${peer}`).to.equal(proxies)
      }
  })

  it('is found behind several proxies that write their addresses in their own ways', () => {
    const callers = callersBehind('192.0.2.1', '2001:db8:ffff::/48')
    expect(forwarded('1.1.1.1, [2001:DB8:1::7]:99, 2001:0db8:FFFF::0:2, ::ffff:c000:0201', callers)).to.deep.equal({
      address: '2001:db8:1::7',
      isKnown: true,
      isShared: false,
    })
  })
})
