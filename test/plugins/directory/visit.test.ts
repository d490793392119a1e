import { expect } from 'chai'
import { createPace, createVisitor, LIMITS, type Visit, type Visitor } from '../../../plugins/directory/visits.ts'
import { type Answer, askFor, type Internet, openInternet } from './internet.ts'

const ok: Answer = (_, response) => response.end('hello')
const to =
  (location: string, status = 302): Answer =>
  (_, response) =>
    response.writeHead(status, { location }).end()

describe('a visit to an untrusted address', () => {
  let net: Internet
  let visit: Visitor
  const limits = LIMITS
  const never = new AbortController().signal
  const get = (url: string): Promise<Visit> => visit(url, 'GET', never)
  const refusal = async (url: string): Promise<string> => {
    const seen = await get(url)
    return seen.failure === 'refused' ? seen.reason : `not refused: ${JSON.stringify(seen)}`
  }

  const hasty = (): Visitor => createVisitor(net.world, { ...limits, milliseconds: 400 }, createPace({ apartMs: 0 }))

  beforeEach(async () => {
    net = await openInternet()
    visit = createVisitor(net.world, limits, createPace({ apartMs: 0 }))
    net.site('shop.example.org', '93.184.216.34', ok)
  })
  afterEach(() => net.close())

  it('resolves the name once, connects to that address and keeps the Host name', async () => {
    net.name('shop.example.org', ['93.184.216.34', '93.184.216.35'], ['127.0.0.1'])
    expect(await get('http://shop.example.org/a?b=1#c')).to.deep.equal({
      failure: null,
      status: 200,
      body: 'hello',
      paymentRequired: null,
    })
    expect(net.resolved).to.deep.equal(['shop.example.org'])
    expect(net.dialled).to.deep.equal(['93.184.216.34:80'])
    expect(net.requests).to.deep.equal(['GET http://shop.example.org/a?b=1'])
  })

  for (const [target, addresses] of Object.entries({
    'the loopback address': ['127.0.0.1'],
    'an address of a private network': ['10.1.2.3'],
    'a link-local address, where clouds keep their secrets': ['169.254.169.254'],
    'an address of carrier-grade NAT': ['100.100.100.200'],
    'an IPv4 address mapped into IPv6': ['::ffff:169.254.169.254'],
    'an IPv4 address translated to IPv6': ['64:ff9b::a9fe:a9fe'],
    'the IPv6 loopback address': ['::1'],
    'a unique local address': ['fd00:ec2::254'],
    'a public address and a private one': ['93.184.216.34', '192.168.0.1'],
    'text that is not an address': ['elsewhere'],
  }))
    it(`is refused if the name resolves to ${target}`, async () => {
      net.name('shop.example.org', addresses)
      expect(await refusal('http://shop.example.org/')).to.equal('a private address')
      expect(net.dialled).to.deep.equal([])
    })

  it('is refused if the URL has a private host, another port, credentials or another scheme', async () => {
    expect(await refusal('http://127.0.0.1/')).to.equal('a private host')
    expect(await refusal('http://0x7f000001/')).to.equal('a private host')
    expect(await refusal('http://[::ffff:127.0.0.1]/')).to.equal('a private host')
    expect(await refusal('http://localhost:8080/')).to.equal('a private host')
    expect(await refusal('http://shop.example.org:22/')).to.equal('port 22')
    expect(await refusal('http://shop.example.org:6379/')).to.equal('port 6379')
    expect(await refusal('http://a:b@shop.example.org/')).to.equal('a user in the address')
    expect(await refusal('file:///etc/passwd')).to.equal('the scheme file:')
    expect(net.dialled).to.deep.equal([])
  })

  it('may use the ports 80, 8080 and 8443', async () => {
    for (const port of [80, 8080, 8443]) expect((await get(`http://shop.example.org:${port}/`)).failure).to.equal(null)
    expect(net.dialled).to.deep.equal(['93.184.216.34:80', '93.184.216.34:8080', '93.184.216.34:8443'])
  })

  it('checks every redirect like the first address', async () => {
    net.site('inside.example.org', '10.0.0.1', ok)
    const targets = {
      'http://inside.example.org/': 'a private address',
      'http://127.0.0.1:8080/admin': 'a private host',
      'http://[::1]/': 'a private host',
      '//169.254.169.254/latest/meta-data': 'a private host',
      'http://shop.example.org:9200/': 'port 9200',
      'file:///etc/passwd': 'the scheme file:',
      'gopher://shop.example.org/': 'the scheme gopher:',
      'http://a:b@shop.example.org/': 'a user in the address',
    }
    for (const [target, reason] of Object.entries(targets)) {
      net.site('hop.example.org', '93.184.216.99', to(target))
      expect(await refusal('http://hop.example.org/'), target).to.equal(reason)
    }
    expect(new Set(net.dialled)).to.deep.equal(new Set(['93.184.216.99:80']))
  })

  it('resolves the name again for every redirect, which catches DNS rebinding', async () => {
    net.site('hop.example.org', '93.184.216.99', to('/again'))
    net.name('hop.example.org', ['93.184.216.99'], ['127.0.0.1'])
    expect(await refusal('http://hop.example.org/')).to.equal('a private address')
    expect(net.requests).to.deep.equal(['GET http://hop.example.org/'])
  })

  it('follows at most three redirects', async () => {
    let left = 3
    net.site('hop.example.org', '93.184.216.99', (request, response) =>
      left-- > 0 ? to(`/${left}`, 307)(request, response) : ok(request, response),
    )
    expect(await get('http://hop.example.org/')).to.include({ status: 200, body: 'hello' })
    left = 4
    expect(await refusal('http://hop.example.org/')).to.equal('more than 3 redirects')
    left = 1000
    expect(await refusal('http://hop.example.org/')).to.equal('more than 3 redirects')
    expect(net.requests).to.have.length(12)
  })

  it('sends an empty JSON object with POST, and follows a 303 with GET', async () => {
    const bodies: string[] = []
    net.site('hop.example.org', '93.184.216.99', async (request, response) => {
      let body = ''
      for await (const chunk of request) body += String(chunk)
      bodies.push(`${request.method} ${body}`)
      return request.method === 'POST' ? to('/done', 303)(request, response) : ok(request, response)
    })
    expect((await visit('http://hop.example.org/', 'POST', never)).failure).to.equal(null)
    expect(bodies).to.deep.equal(['POST {}', 'GET '])
  })

  it('stops reading a body that never ends', async () => {
    net.site('shop.example.org', '93.184.216.34', (_, response) => {
      const fill = (): void => {
        while (response.write(Buffer.alloc(65_536, 'x')));
        response.once('drain', fill)
      }
      fill()
    })
    visit = createVisitor(net.world, { ...limits, bytes: 200_000 }, createPace({ apartMs: 0 }))
    const seen = await get('http://shop.example.org/')
    expect(seen.failure === null && seen.body.length).to.equal(200_000)
  })

  it('times out while resolving, waiting for headers or reading the body', async () => {
    const slow = createVisitor(
      { ...net.world, resolve: () => new Promise(() => undefined) },
      { ...limits, milliseconds: 50 },
      createPace({ apartMs: 0 }),
    )
    expect((await slow('http://shop.example.org/', 'GET', never)).failure).to.equal('unreachable')
    visit = hasty()
    net.site('shop.example.org', '93.184.216.34', () => undefined)
    expect((await get('http://shop.example.org/')).failure).to.equal('unreachable')
    net.site('shop.example.org', '93.184.216.34', (_, response) => response.write('a'))
    expect((await get('http://shop.example.org/')).failure).to.equal('unreachable')
  })

  it('has one timeout for all redirects together', async () => {
    visit = hasty()
    net.site('hop.example.org', '93.184.216.99', (request, response) => {
      setTimeout(() => to('/next')(request, response), 150)
    })
    expect((await get('http://hop.example.org/')).failure).to.equal('unreachable')
    expect(net.requests.length).to.be.below(4)
  })

  it('reports an unreachable service without throwing', async () => {
    expect((await get('http://nowhere.example.org/')).failure).to.equal('unreachable')
    net.site('shop.example.org', '93.184.216.34', (request) => request.socket.destroy())
    expect((await get('http://shop.example.org/')).failure).to.equal('unreachable')
    net.site('shop.example.org', '93.184.216.34', (request) => request.socket.end('SSH-2.0-OpenSSH_9.6\r\n'))
    expect((await get('http://shop.example.org/')).failure).to.equal('unreachable')
    net.site('shop.example.org', '93.184.216.34', (_, response) =>
      response.writeHead(200, { x: 'y'.repeat(20_000) }).end(),
    )
    expect((await get('http://shop.example.org/')).failure).to.equal('unreachable')
    net.site('shop.example.org', '93.184.216.34', to('http://['))
    expect((await get('http://shop.example.org/')).failure).to.equal('unreachable')
  })

  it('uses TLS with the host name and refuses an invalid certificate', async () => {
    expect((await get('https://shop.example.org/')).failure).to.equal('unreachable')
    expect(net.dialled).to.deep.equal(['93.184.216.34:443'])
    expect(net.requests).to.deep.equal([])
  })

  it('stops when its caller aborts', async () => {
    net.site('shop.example.org', '93.184.216.34', () => undefined)
    const leaving = new AbortController()
    const asked = visit('http://shop.example.org/', 'GET', leaving.signal)
    leaving.abort(new Error('left'))
    expect(await asked.catch((error: Error) => error.message)).to.equal('left')
  })

  it('returns the payment requirements from the header of a 402', async () => {
    net.site('shop.example.org', '93.184.216.34', askFor('5000', '0xB2'))
    const seen = await get('http://shop.example.org/')
    expect(seen).to.include({ status: 402, body: '{}' })
    expect(seen.failure === null && seen.paymentRequired).to.match(/^[A-Za-z0-9+/=]{50,}$/)
  })

  it('waits for other visits to the same network, and while three visits run in total', async () => {
    visit = createVisitor(net.world, { ...limits, milliseconds: 10_000 }, createPace({ atOnce: 3, apartMs: 1 }))
    const later: Answer = (_, response) => void setTimeout(() => response.end('x'), 15)
    const hosts = Array.from({ length: 18 }, (_, i) => `h${i}.example.org`)
    hosts.forEach((host, i) => net.site(host, `93.184.${200 + (i % 6)}.${i + 1}`, later))
    const seen = await Promise.all(hosts.map((host) => get(`http://${host}/`)))
    expect(seen.map(({ failure }) => failure)).to.deep.equal(hosts.map(() => null))
    expect(net.most.all).to.equal(3)
    expect(Object.values(net.most.near)).to.deep.equal([1, 1, 1, 1, 1, 1])
  })
})
