/** The first module of a worker thread that runs from TypeScript sources. A thread does not inherit the loader of tsx. */
import '../from-source.mjs'

await import('./thread.ts')
