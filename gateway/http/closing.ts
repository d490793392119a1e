import type { Server } from 'node:http'

const GRACE_MS = 10_000

/** Stops accepting, lets running requests end for a while, then cuts what is left. */
export async function closed(server: Server): Promise<void> {
  if (!server.listening) return
  await new Promise<void>((resolve) => {
    const cut = setTimeout(() => server.closeAllConnections(), GRACE_MS)
    server.close(() => {
      clearTimeout(cut)
      resolve()
    })
    server.closeIdleConnections()
  })
}
