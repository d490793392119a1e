import { expect } from 'chai'
import { createPace, createVisitor, LIMITS, type Visit, type Visitor } from '../../../plugins/directory/visits.ts'
import { type Responder, paymentRequired, type FakeInternet, openFakeInternet } from './fake-internet.ts'

const ok: Responder = (_, response) => response.end('hello')
const redirectTo =
  (location: string, status = 302): Responder =>
  (_, response) =>
    response.writeHead(status, { location }).end()

describe('a visit to an untrusted address', () => {
  let internet: FakeInternet
  let visit: Visitor
  const limits = LIMITS
  const neverAborted = new AbortController().signal
  const visitByGet = (url: string): Promise<Visit> => visit(url, 'GET', neverAborted)
  const refusal = async (url: string): Promise<string> => {
    const result = await visitByGet(url)
    return result.failure === 'refused' ? result.reason : `not refused: ${JSON.stringify(result)}`
  }

  const impatientVisitor = (): Visitor =>
    createVisitor(internet.world, { ...limits, milliseconds: 400 }, createPace({ apartMs: 0 }))

  beforeEach(async () => {
    internet = await openFakeInternet()
    visit = createVisitor(internet.world, limits, createPace({ apartMs: 0 }))
    internet.site('shop.example.org', '93.184.216.34', ok)
  })
  afterEach(() => internet.close())

  it('resolves the name once, connects to that address and keeps the Host name', async () => {
    internet.name('shop.example.org', ['93.184.216.34', '93.184.216.35'], ['127.0.0.1'])
    expect(await visitByGet('http://shop.example.org/a?b=1#c')).to.deep.equal({
      failure: null,
      status: 200,
      body: 'hello',
      paymentRequired: null,
    })
    expect(internet.resolved).to.deep.equal(['shop.example.org'])
    expect(internet.dialled).to.deep.equal(['93.184.216.34:80'])
    expect(internet.requests).to.deep.equal(['GET http://shop.example.org/a?b=1'])
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
      internet.name('shop.example.org', addresses)
      expect(await refusal('http://shop.example.org/')).to.equal('a private address')
      expect(internet.dialled).to.deep.equal([])
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
    expect(internet.dialled).to.deep.equal([])
  })

  it('may use the ports 80, 8080 and 8443', async () => {
    for (const port of [80, 8080, 8443])
      expect((await visitByGet(`http://shop.example.org:${port}/`)).failure).to.equal(null)
    expect(internet.dialled).to.deep.equal(['93.184.216.34:80', '93.184.216.34:8080', '93.184.216.34:8443'])
  })

  it('checks every redirect like the first address', async () => {
    internet.site('inside.example.org', '10.0.0.1', ok)
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
      internet.site('hop.example.org', '93.184.216.99', redirectTo(target))
      expect(await refusal('http://hop.example.org/'), target).to.equal(reason)
    }
    expect(new Set(internet.dialled)).to.deep.equal(new Set(['93.184.216.99:80']))
  })

  it('resolves the name again for every redirect, which catches DNS rebinding', async () => {
    internet.site('hop.example.org', '93.184.216.99', redirectTo('/again'))
    internet.name('hop.example.org', ['93.184.216.99'], ['127.0.0.1'])
    expect(await refusal('http://hop.example.org/')).to.equal('a private address')
    expect(internet.requests).to.deep.equal(['GET http://hop.example.org/'])
  })

  it('follows at most three redirects', async () => {
    let redirectsLeft = 3
    internet.site('hop.example.org', '93.184.216.99', (request, response) =>
      redirectsLeft-- > 0 ? redirectTo(`/${redirectsLeft}`, 307)(request, response) : ok(request, response),
    )
    expect(await visitByGet('http://hop.example.org/')).to.include({ status: 200, body: 'hello' })
    redirectsLeft = 4
    expect(await refusal('http://hop.example.org/')).to.equal('more than 3 redirects')
    redirectsLeft = 1000
    expect(await refusal('http://hop.example.org/')).to.equal('more than 3 redirects')
    expect(internet.requests).to.have.length(12)
  })

  it('sends an empty JSON object with POST, and follows a 303 with GET', async () => {
    const bodies: string[] = []
    internet.site('hop.example.org', '93.184.216.99', async (request, response) => {
      let body = ''
      for await (const chunk of request) body += String(chunk)
      bodies.push(`${request.method} ${body}`)
      return request.method === 'POST' ? redirectTo('/done', 303)(request, response) : ok(request, response)
    })
    expect((await visit('http://hop.example.org/', 'POST', neverAborted)).failure).to.equal(null)
    expect(bodies).to.deep.equal(['POST {}', 'GET '])
  })

  it('stops reading a body that never ends', async () => {
    internet.site('shop.example.org', '93.184.216.34', (_, response) => {
      const fill = (): void => {
        while (response.write(Buffer.alloc(65_536, 'x')));
        response.once('drain', fill)
      }
      fill()
    })
    visit = createVisitor(internet.world, { ...limits, bytes: 200_000 }, createPace({ apartMs: 0 }))
    const result = await visitByGet('http://shop.example.org/')
    expect(result.failure === null && result.body.length).to.equal(200_000)
  })

  it('times out while resolving, waiting for headers or reading the body', async () => {
    const slow = createVisitor(
      { ...internet.world, resolve: () => new Promise(() => undefined) },
      { ...limits, milliseconds: 50 },
      createPace({ apartMs: 0 }),
    )
    expect((await slow('http://shop.example.org/', 'GET', neverAborted)).failure).to.equal('unreachable')
    visit = impatientVisitor()
    internet.site('shop.example.org', '93.184.216.34', () => undefined)
    expect((await visitByGet('http://shop.example.org/')).failure).to.equal('unreachable')
    internet.site('shop.example.org', '93.184.216.34', (_, response) => response.write('a'))
    expect((await visitByGet('http://shop.example.org/')).failure).to.equal('unreachable')
  })

  it('has one timeout for all redirects together', async () => {
    visit = impatientVisitor()
    internet.site('hop.example.org', '93.184.216.99', (request, response) => {
      setTimeout(() => redirectTo('/next')(request, response), 150)
    })
    expect((await visitByGet('http://hop.example.org/')).failure).to.equal('unreachable')
    expect(internet.requests.length).to.be.below(4)
  })

  it('reports an unreachable service without throwing', async () => {
    expect((await visitByGet('http://nowhere.example.org/')).failure).to.equal('unreachable')
    internet.site('shop.example.org', '93.184.216.34', (request) => request.socket.destroy())
    expect((await visitByGet('http://shop.example.org/')).failure).to.equal('unreachable')
    internet.site('shop.example.org', '93.184.216.34', (request) => request.socket.end('SSH-2.0-OpenSSH_9.6\r\n'))
    expect((await visitByGet('http://shop.example.org/')).failure).to.equal('unreachable')
    internet.site('shop.example.org', '93.184.216.34', (_, response) =>
      response.writeHead(200, { x: 'y'.repeat(20_000) }).end(),
    )
    expect((await visitByGet('http://shop.example.org/')).failure).to.equal('unreachable')
    internet.site('shop.example.org', '93.184.216.34', redirectTo('http://['))
    expect((await visitByGet('http://shop.example.org/')).failure).to.equal('unreachable')
  })

  it('uses TLS with the host name and refuses an invalid certificate', async () => {
    expect((await visitByGet('https://shop.example.org/')).failure).to.equal('unreachable')
    expect(internet.dialled).to.deep.equal(['93.184.216.34:443'])
    expect(internet.requests).to.deep.equal([])
  })

  it('stops when its caller aborts', async () => {
    internet.site('shop.example.org', '93.184.216.34', () => undefined)
    const controller = new AbortController()
    const visiting = visit('http://shop.example.org/', 'GET', controller.signal)
    controller.abort(new Error('left'))
    expect(await visiting.catch((error: Error) => error.message)).to.equal('left')
  })

  it('returns the payment requirements from the header of a 402', async () => {
    internet.site('shop.example.org', '93.184.216.34', paymentRequired('5000', '0xB2'))
    const result = await visitByGet('http://shop.example.org/')
    expect(result).to.include({ status: 402, body: '{}' })
    expect(result.failure === null && result.paymentRequired).to.match(/^[A-Za-z0-9+/=]{50,}$/)
  })

  it('waits for other visits to the same network, and while three visits run in total', async () => {
    visit = createVisitor(internet.world, { ...limits, milliseconds: 10_000 }, createPace({ atOnce: 3, apartMs: 1 }))
    const slowAnswer: Responder = (_, response) => void setTimeout(() => response.end('x'), 15)
    const hosts = Array.from({ length: 18 }, (_, i) => `h${i}.example.org`)
    hosts.forEach((host, i) => internet.site(host, `93.184.${200 + (i % 6)}.${i + 1}`, slowAnswer))
    const result = await Promise.all(hosts.map((host) => visitByGet(`http://${host}/`)))
    expect(result.map(({ failure }) => failure)).to.deep.equal(hosts.map(() => null))
    expect(internet.peak.total).to.equal(3)
    expect(Object.values(internet.peak.byNetwork)).to.deep.equal([1, 1, 1, 1, 1, 1])
  })
})
