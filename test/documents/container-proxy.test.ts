import { execFileSync, spawn } from 'node:child_process'
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect } from 'chai'
import { openGateway, type TestGateway } from '../support/gateway.ts'
import { freePort } from '../../gateway/sandbox/anvil.ts'
import { until } from '../support/until.ts'

const CONF = resolve(import.meta.dirname, '../../docs/examples/container/nginx.conf')
const NGINX = '/usr/sbin/nginx'
const OPENSSL = '/usr/bin/openssl'

/** Skips, and says so, where Debian's nginx and openssl are not installed. */
const whereInstalled = existsSync(NGINX) && existsSync(OPENSSL) ? describe : describe.skip

whereInstalled('the proxy of docs/examples/container', () => {
  let shop: TestGateway
  let folder: string
  let port: number
  let stop: () => void = () => {}

  before(async () => {
    shop = await openGateway({ TRUSTED_PROXIES: '127.0.0.1' })
    folder = mkdtempSync(join(tmpdir(), 'tollgate-nginx-'))
    // Workers of an nginx that root starts are another user.
    chmodSync(folder, 0o755)
    port = await freePort()
    const names = [
      '-subj',
      '/CN=localhost',
      '-keyout',
      join(folder, 'privkey.pem'),
      '-out',
      join(folder, 'fullchain.pem'),
    ]
    execFileSync(OPENSSL, ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '1', ...names], {
      stdio: 'ignore',
    })
    const conf = readFileSync(CONF, 'utf8')
      .replaceAll('/tmp/', `${folder}/`)
      .replaceAll('/etc/nginx/tls/', `${folder}/`)
      .replaceAll('gateway:4021', new URL(shop.url).host)
      .replace('listen 8443', `listen 127.0.0.1:${port}`)
    writeFileSync(join(folder, 'nginx.conf'), conf)
    const args = ['-p', folder, '-c', join(folder, 'nginx.conf'), '-e', join(folder, 'error.log'), '-g', 'daemon off;']
    const child = spawn(NGINX, args, { stdio: 'ignore' })
    stop = () => void child.kill()
    await until(async () => (await ask('/livez').catch(() => null))?.status === 200)
  })
  after(async () => {
    stop()
    await shop?.close()
    rmSync(folder, { recursive: true, force: true })
  })

  /** A request over TLS, whose certificate nobody has signed. */
  const ask = (path: string, method = 'GET', body = ''): Promise<{ status: number; body: string }> =>
    new Promise((resolve, reject) => {
      const headers = { 'content-type': 'application/json', host: 'localhost' }
      const sent = request(
        { host: '127.0.0.1', port, path, method, headers, rejectUnauthorized: false },
        (response) =>
          void text(response).then((read) => resolve({ status: response.statusCode ?? 0, body: read }), reject),
      )
      sent.on('error', reject).end(body)
    })

  it('ends TLS, and passes offers and large bodies on', async () => {
    expect((await ask('/v1/echo/hello')).status).to.equal(402)
    expect((await ask('/health')).body).to.contain('"status"')
    const large = JSON.stringify({ text: 'x'.repeat(200_000) })
    expect((await ask('/v1/echo', 'POST', large)).status).to.equal(402)
  })
})
