/** The text that a process prints when it cannot start: the cause and the remedy, or a stack if only we can mend it. */
import { ConfigError } from './config/config-error.ts'
import { sourceStack } from './observe/source-positions.ts'
import { DataError } from './stores/data-error.ts'
import { SignerError } from './stores/signer-client.ts'
import { CatalogError } from './validation/issue.ts'
import { withCommands } from './config/project-root.ts'

/** A system error of Node. */
type SystemError = NodeJS.ErrnoException & {
  readonly port?: number
  readonly hostname?: string
}

/** Returns what to do for errors that an operator can fix, else the stack. */
export function startErrorText(error: unknown): string {
  if (error instanceof ConfigError || error instanceof CatalogError || error instanceof DataError)
    return withCommands(error.message)
  if (!(error instanceof Error)) return String(error)
  if (error instanceof SignerError)
    return `${error.message}${causeOf(error)} Start the signer first, name its socket in SIGNER_SOCKET, and let this user into the group of the socket.`
  return systemErrorText(error) ?? sourceStack(error.stack ?? error.message)
}

function causeOf({ cause }: Error): string {
  return cause instanceof Error ? ` (${cause.message})` : ''
}

/** Where the gateway may not write, or cannot. */
const UNWRITABLE = ['ENOSPC', 'EDQUOT', 'EROFS', 'EACCES', 'EPERM']

function systemErrorText({ message, code = '', syscall = '', port, hostname }: SystemError): string | null {
  // A worker's port is bound by its primary.
  if (syscall === 'listen' || syscall === 'bind') {
    if (code === 'EADDRINUSE') return `Port ${port} is in use by another process. Set PORT to a free port.`
    if (code === 'EACCES')
      return `${message}. This user may not listen on port ${port}: set PORT to 1024 or more, and let a proxy take port ${port}.`
    return `${message}. Set HOST to an address of this machine, or to 0.0.0.0 for all of them.`
  }
  if (syscall === 'getaddrinfo')
    return `${message}. If ${hostname} is what HOST says, set HOST to an address of this machine.`
  if (syscall === 'mkdtemp') return `${message}. Set TMPDIR to a folder that the gateway may write to.`
  if (UNWRITABLE.includes(code)) return `${message}. The gateway must be able to write to DATA_DIR.`
  if (syscall === 'mkdir' && (code === 'ENOTDIR' || code === 'EEXIST'))
    return `${message}. A file is where a folder must be: DATA_DIR must name a folder.`
  return null
}
