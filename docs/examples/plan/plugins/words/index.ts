/** Sells a word. */
import { definePlugin } from 'tollgate/plugin'

export default definePlugin({
  name: 'words',
  setup: () => ({ handlers: { getWord: () => ({ word: 'tide' }) } }),
})
