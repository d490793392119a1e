/** Contract wallets on a test chain. They are compiled here and controlled by an ordinary key. */
import {
  createWalletClient,
  encodeFunctionData,
  http,
  keccak256,
  parseAbi,
  serializeErc6492Signature,
  toBytes,
} from 'viem'
import {
  generatePrivateKey,
  type LocalAccount,
  type PrivateKeyAccount,
  privateKeyToAccount,
  toAccount,
} from 'viem/accounts'
import { baseSepolia } from 'viem/chains'
import type { Hex } from '../../gateway/config/networks.ts'
import { compile } from '../../scripts/compile.ts'
import type { TestChain } from './chain.ts'
import { newSettleKey } from './payments.ts'
import { until } from './until.ts'

/** The wallet accepts signatures of 66 bytes that begin with 1, so that they differ from those of keys. */
const SOURCE = `// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;
contract Wallet {
  address public owner;
  constructor(address of_) { owner = of_; }
  function isValidSignature(bytes32 digest, bytes calldata signature) external view returns (bytes4) {
    address signer = owner == address(0) ? address(this) : owner;
    if (signature.length != 66 || signature[0] != 0x01) return 0;
    (bytes32 r, bytes32 s) = abi.decode(signature[1:65], (bytes32, bytes32));
    return ecrecover(digest, uint8(signature[65]), r, s) == signer ? bytes4(0x1626ba7e) : bytes4(0);
  }
}
contract Factory {
  function create(address owner) external returns (address) { return address(new Wallet{salt: 0}(owner)); }
  function addressOf(address owner) external view returns (address) {
    bytes32 code = keccak256(abi.encodePacked(type(Wallet).creationCode, abi.encode(owner)));
    return address(uint160(uint256(keccak256(abi.encodePacked(bytes1(0xff), address(this), bytes32(0), code)))));
  }
}`

/**
 * Accepts everything while gas has no price, as in a careless simulation. In a transaction it burns what gas it gets.
 */
const EVIL = `// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;
contract Evil {
  function isValidSignature(bytes32, bytes calldata) external view returns (bytes4) {
    if (tx.gasprice == 0) return 0x1626ba7e;
    while (gasleft() > 3000) {}
    return 0;
  }
}`

/** Accepts every signature, and uses nearly all the gas that it gets for that. */
const COSTLY = `// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;
contract Costly {
  function isValidSignature(bytes32, bytes calldata) external view returns (bytes4) {
    uint256 start = gasleft();
    while (start - gasleft() < 400000) {}
    return 0x1626ba7e;
  }
}`

const ABI = parseAbi([
  'function create(address owner) returns (address)',
  'function addressOf(address) view returns (address)',
])

export interface ContractWallets {
  readonly factory: Hex
  /** A wallet with USDC. If it is not deployed, its signatures contain the call that deploys it (ERC-6492). */
  newWallet(options: { readonly deployed: boolean; readonly balance?: bigint }): Promise<LocalAccount>
  /** A key whose account delegates to the wallet's code (EIP-7702). */
  newDelegatedAccount(): Promise<LocalAccount>
  /** A contract that accepts any signature while gas has no price, and burns gas in a transaction. */
  newEvilWallet(): Promise<LocalAccount>
  /** A contract that accepts any signature, and uses 400,000 gas for that. */
  newCostlyWallet(): Promise<LocalAccount>
  /** A key whose account delegates to such a contract (EIP-7702). Its signatures are those of a key. */
  newEvilDelegatedAccount(): Promise<LocalAccount>
  /** Lets the account of a key delegate to such a contract. */
  turnEvil(owner: PrivateKeyAccount): Promise<void>
}

export async function createContractWallets(chain: TestChain): Promise<ContractWallets> {
  const factory: Hex = `0x${keccak256(toBytes(String(Math.random()))).slice(-40)}`
  const delegate: Hex = `0x${keccak256(factory).slice(-40)}`
  await chain.rpc.call('anvil_setCode', factory, compile('Factory', SOURCE).runtime)
  await chain.rpc.call('anvil_setCode', delegate, compile('Wallet', SOURCE).runtime)
  const account = privateKeyToAccount(await newSettleKey(chain))
  const client = createWalletClient({ account, chain: baseSepolia, transport: http(chain.rpcUrl) })
  const mined = (hash: Hex): Promise<void> =>
    until(async () => (await chain.rpc.call('eth_getTransactionReceipt', hash)) !== null)

  /** An account at `address` that signs as the wallet does for its owner. */
  const signing = (address: Hex, owner: LocalAccount, wrap = (signature: Hex): Hex => signature): LocalAccount =>
    toAccount({
      address,
      signTypedData: async (data) => wrap(`0x01${(await owner.signTypedData(data as never)).slice(2)}`),
      signMessage: async (message) => wrap(`0x01${(await owner.signMessage(message)).slice(2)}`),
      signTransaction: () => Promise.reject(new Error('not needed')),
    })

  const evil: Hex = `0x${keccak256(delegate).slice(-40)}`
  await chain.rpc.call('anvil_setCode', evil, compile('Evil', EVIL).runtime)

  async function delegateTo(contractAddress: Hex, owner: PrivateKeyAccount): Promise<void> {
    const { chainId } = chain.network
    const authorization = await owner.signAuthorization({ contractAddress, chainId, nonce: 0 })
    await mined(await client.sendTransaction({ to: account.address, authorizationList: [authorization] }))
  }

  async function newOwner(): Promise<PrivateKeyAccount> {
    const owner = privateKeyToAccount(generatePrivateKey())
    await chain.mint(owner.address, 1_000_000n)
    return owner
  }

  return {
    factory,
    turnEvil: (owner) => delegateTo(evil, owner),
    async newEvilDelegatedAccount() {
      const owner = await newOwner()
      await delegateTo(evil, owner)
      return owner
    },
    async newCostlyWallet() {
      const owner = await newOwner()
      const address: Hex = `0x${keccak256(keccak256(owner.address)).slice(-40)}`
      await chain.rpc.call('anvil_setCode', address, compile('Costly', COSTLY).runtime)
      await chain.mint(address, 1_000_000n)
      return signing(address, owner)
    },
    async newEvilWallet() {
      const owner = await newOwner()
      const address: Hex = `0x${keccak256(owner.address).slice(-40)}`
      await chain.rpc.call('anvil_setCode', address, compile('Evil', EVIL).runtime)
      await chain.mint(address, 1_000_000n)
      return signing(address, owner)
    },
    async newWallet({ deployed, balance = 1_000_000n }) {
      const owner = privateKeyToAccount(generatePrivateKey())
      const call = {
        to: factory,
        data: encodeFunctionData({ abi: ABI, functionName: 'addressOf', args: [owner.address] }),
      }
      const address: Hex = `0x${(await chain.rpc.call<Hex>('eth_call', call, 'latest')).slice(-40)}`
      const data = encodeFunctionData({ abi: ABI, functionName: 'create', args: [owner.address] })
      if (balance > 0n) await chain.mint(address, balance)
      if (deployed) await mined(await client.sendTransaction({ to: factory, data }))
      return signing(address, owner, (signature) =>
        deployed ? signature : serializeErc6492Signature({ address: factory, data, signature }),
      )
    },
    async newDelegatedAccount() {
      const owner = await newOwner()
      await delegateTo(delegate, owner)
      return signing(owner.address, owner)
    },
  }
}
