/** Debian's nginx and HAProxy in front of a gateway, with connections to it that stay open. */
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../gateway/sandbox/anvil.ts'
import { until } from './until.ts'

export interface ReverseProxy {
  readonly url: string
  close(): Promise<void>
}

/** How a proxy is run. It tries no request twice, so that each lost one is seen. */
interface Setup {
  /** Names the program if it is not where Debian puts it. */
  readonly variable: string
  readonly program: string
  /** `own` is the port to listen at, `gateway` that of the gateway. */
  config(folder: string, own: number, gateway: number): string
  args(folder: string, file: string): readonly string[]
}

const NGINX: Setup = {
  variable: 'NGINX',
  program: '/usr/sbin/nginx',
  config(folder, own, gateway) {
    const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    return `
daemon off; worker_processes 1; pid ${folder}/pid; error_log ${folder}/error.log;
events { worker_connections 256; }
http {
  access_log off;
  ${paths.map((name) => `${name}_temp_path ${folder}/${name};`).join(' ')}
  upstream gateway { server 127.0.0.1:${gateway}; keepalive 32; }
  server {
    listen 127.0.0.1:${own};
    location / {
      proxy_pass http://gateway; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_next_upstream off;
    }
  }
}`
  },
  args: (folder, file) => ['-p', folder, '-c', file, '-e', join(folder, 'error.log')],
}

/** The address from which HAProxy calls, for TRUSTED_PROXIES. Every address of 127.0.0.0/8 is this machine's. */
export const PROXY_ADDRESS = '127.0.0.3'

const HAPROXY: Setup = {
  variable: 'HAPROXY',
  program: '/usr/sbin/haproxy',
  config: (_folder, own, gateway) => `
global
  maxconn 256
defaults
  mode http
  timeout connect 5s
  timeout client 30s
  timeout server 30s
  retries 0
  http-reuse always
frontend callers
  bind 127.0.0.1:${own}
  option forwardfor
  default_backend gateway
backend gateway
  server gateway 127.0.0.1:${gateway} source ${PROXY_ADDRESS}
`,
  args: (_folder, file) => ['-db', '-f', file],
}

/** The proxies by the name that test/allowed-skips.json has for them. */
export const REVERSE_PROXIES: Readonly<Record<string, Setup>> = { nginx: NGINX, HAProxy: HAPROXY }

/** Starts a proxy in front of the gateway at `port`. Returns null if its program is not installed. */
export async function startReverseProxy(setup: Setup, port: number): Promise<ReverseProxy | null> {
  const program = [process.env[setup.variable] ?? '', setup.program].find((file) => file !== '' && existsSync(file))
  if (program === undefined) return null
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-proxy-'))
  const own = await freePort()
  const file = join(folder, 'proxy.conf')
  writeFileSync(file, setup.config(folder, own, port))
  const child = spawn(program, setup.args(folder, file), { stdio: 'ignore' })
  const ended = new Promise((resolve) => child.once('exit', resolve))
  const kill = (): boolean => child.kill('SIGKILL')
  process.once('exit', kill)
  await until(() => accepts(own))
  return {
    url: `http://127.0.0.1:${own}`,
    async close() {
      child.kill('SIGTERM')
      await ended
      process.off('exit', kill)
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}
