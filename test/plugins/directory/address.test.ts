import { expect } from 'chai'
import fc from 'fast-check'
import { canonicalAddress, isPublic, networkPrefix } from '../../../plugins/directory/public-addresses.ts'

const urlOf = (text: unknown): string | null => canonicalAddress(text).url
const reasonOf = (text: unknown): string | null => canonicalAddress(text).reason

describe('the canonical address', () => {
  it('is the same for every spelling of an address', () => {
    for (const text of [
      'https://api.example.com/b',
      'HTTPS://API.Example.COM:443/b',
      'https://user:secret@api.example.com/b#part',
      'https://api.example.com./b',
      'https://api.example.com/a/./c/../../b',
      ' https://api.example.com/b\n',
      'https:\\\\api.example.com\\b',
    ])
      expect(urlOf(text), text).to.equal('https://api.example.com/b')
    expect(urlOf('http://api.example.com:80')).to.equal('http://api.example.com/')
    expect(urlOf('https://bücher.example/ä?q=ü')).to.equal('https://xn--bcher-kva.example/%C3%A4?q=%C3%BC')
  })

  it('does not change when it is computed again', () => {
    fc.assert(
      fc.property(fc.webUrl({ withQueryParameters: true }), (text) => {
        const url = urlOf(text)
        return url === null || urlOf(url) === url
      }),
      { numRuns: 40 },
    )
  })

  it('is refused for other schemes and for text that is not an address', () => {
    for (const text of [
      'monopoly://game_210/agent0',
      'solana-transfer://AsED.../8EMJ...',
      'mcp://tool/x',
      'file:///etc/passwd',
      'javascript:alert(1)',
      'data:text/html,x',
      'ftp://example.com',
    ])
      expect(reasonOf(text), text).to.equal('scheme')
    for (const text of [
      '',
      'example.com/path',
      '/path',
      'https://',
      'http://exa mple.com',
      'https://{tenant}.example.com/mcp',
      `https://example.com/${'a'.repeat(3000)}`,
      null,
      undefined,
      7,
      {},
    ])
      expect(reasonOf(text), JSON.stringify(text)).to.equal('malformed')
  })

  it('is refused for private hosts in every notation', () => {
    for (const host of [
      'localhost',
      'test.localhost:3003',
      'meteo-labs-24.acp.localhost:8403',
      'LOCALHOST.',
      'intranet',
      'printer.local',
      'db.internal',
      'nas.home.arpa',
      'shop.test',
      '127.0.0.1',
      '127.1',
      '0x7f.1',
      '0177.0.0.1',
      '2130706433',
      '10.0.0.8:8080',
      '172.31.255.255',
      '192.168.1.1',
      '169.254.169.254',
      '100.64.0.1',
      '0.0.0.0',
      '[::1]',
      '[::]',
      '[fe80::1]',
      '[fd00::1]',
      '[::ffff:127.0.0.1]',
      '[::ffff:7f00:1]',
      '[::ffff:8.8.8.8]',
      '[64:ff9b::7f00:1]',
      '[2002:7f00:1::]',
    ])
      expect(reasonOf(`http://${host}/`), host).to.equal('private_host')
  })

  it('is refused for preview deployments and tunnels', () => {
    for (const host of [
      'shop-git-main-me.vercel.app',
      'shop-a1b2c3d4e-me.vercel.app',
      'deploy-preview-12--shop.netlify.app',
      '1a2b3c4d.shop.pages.dev',
      'shop-pr-12.up.railway.app',
      'abcd.ngrok-free.app',
      'words-and-words.trycloudflare.com',
      'user-8080.app.github.dev',
    ])
      expect(reasonOf(`https://${host}/`), host).to.equal('preview')
    for (const host of [
      'city-campaign-production.up.railway.app',
      'lookup.bustercall.workers.dev',
      'shop.vercel.app',
      'shop.pages.dev',
      'shop.netlify.app',
    ])
      expect(reasonOf(`https://${host}/`), host).to.equal(null)
  })

  it('is marked if its path has placeholders', () => {
    const isTemplate = (text: string): boolean => {
      const found = canonicalAddress(text)
      return found.reason === null && found.isTemplate
    }
    for (const path of ['/:var1', '/node/:id/state', '/{id}', '/%7Bid%7D', '/[id]/x', '/files/*'])
      expect(isTemplate(`https://api.example.com${path}`), path).to.equal(true)
    for (const path of ['/', '/a:b', '/12:30', '/token/0x8335', '/?q={x}', '/a*b'])
      expect(isTemplate(`https://api.example.com${path}`), path).to.equal(false)
  })
})

describe('a public internet address', () => {
  it('is outside the special-purpose ranges', () => {
    for (const address of [
      '8.8.8.8',
      '93.184.216.34',
      '172.32.0.1',
      '100.128.0.1',
      '2606:2800:220:1:248:1893:25c8:1946',
      '2a00:1450::1',
    ])
      expect(isPublic(address), address).to.equal(true)
    for (const address of [
      '0.1.2.3',
      '10.255.255.255',
      '100.127.255.255',
      '127.0.0.53',
      '169.254.1.1',
      '172.16.0.1',
      '192.0.0.8',
      '192.0.2.1',
      '192.88.99.1',
      '192.168.0.1',
      '198.18.0.1',
      '198.19.255.255',
      '198.51.100.1',
      '203.0.113.1',
      '224.0.0.1',
      '239.1.1.1',
      '240.0.0.1',
      '255.255.255.255',
      '::',
      '::1',
      '::ffff:8.8.8.8',
      '::8.8.8.8',
      '64:ff9b::808:808',
      '64:ff9b:1::1',
      '100::1',
      '2001::1',
      '2001:db8::1',
      '2002:808:808::1',
      '3fff::1',
      'fc00::1',
      'fd12::1',
      'fe80::1',
      'fe80::1%eth0',
      'fec0::1',
      'ff02::1',
      'example.com',
      '',
      '1.2.3',
      '1.2.3.4.5',
    ])
      expect(isPublic(address), address).to.equal(false)
  })

  it('shares its rate limit with neighbouring addresses', () => {
    expect(networkPrefix('93.184.216.34')).to.equal(networkPrefix('93.184.216.200'))
    expect(networkPrefix('93.184.216.34')).to.not.equal(networkPrefix('93.184.217.34'))
    expect(networkPrefix('2606:2800:220::1')).to.equal(networkPrefix('2606:2800:0220:ffff::9'))
    expect(networkPrefix('2606:2800::1')).to.equal('2606:2800:0')
  })
})
