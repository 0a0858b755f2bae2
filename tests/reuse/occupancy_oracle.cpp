// NVIDIA's own occupancy calculator behind a pipe: a question a line on stdin, an answer a line on stdout.
// Question: target threads registers shared_bytes. Answer: eight integers, see FIELDS in occupancy_oracle.py.
// The header is NVIDIA's and not part of this repository; the figures of the devices are written here a second time,
// independently of lessons_lib/base/gpus.py.
#include <climits>
#include <cstdio>
#include <cuda_occupancy.h>

struct Device { int target, major, minor, threads_per_sm; size_t shared_kib_per_sm, shared_kib_per_block, reserved; };

static const Device DEVICES[] = {
    {75, 7, 5, 1024, 64, 64, 0},        {80, 8, 0, 2048, 164, 163, 1024},  {86, 8, 6, 1536, 100, 99, 1024},
    {89, 8, 9, 1536, 100, 99, 1024},    {90, 9, 0, 2048, 228, 227, 1024},  {100, 10, 0, 2048, 228, 227, 1024},
};

static bool ask(int target, int threads, int registers, size_t shared) {
    for (const Device &device : DEVICES) {
        if (device.target != target) continue;
        cudaOccDeviceProp prop;
        prop.computeMajor = device.major;
        prop.computeMinor = device.minor;
        prop.maxThreadsPerBlock = 1024;
        prop.maxThreadsPerMultiprocessor = device.threads_per_sm;
        prop.regsPerBlock = prop.regsPerMultiprocessor = 65536;
        prop.warpSize = 32;
        prop.sharedMemPerBlock = 48 * 1024;
        prop.sharedMemPerMultiprocessor = device.shared_kib_per_sm * 1024;
        prop.sharedMemPerBlockOptin = device.shared_kib_per_block * 1024;
        prop.reservedSharedMemPerBlock = device.reserved;
        prop.numSms = 1;
        cudaOccFuncAttributes kernel;
        kernel.maxThreadsPerBlock = INT_MAX;
        kernel.numRegs = registers;
        kernel.sharedSizeBytes = 0;
        kernel.partitionedGCConfig = PARTITIONED_GC_OFF;
        kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
        kernel.maxDynamicSharedSizeBytes = prop.sharedMemPerBlockOptin;
        kernel.numBlockBarriers = 1;
        cudaOccDeviceState state;
        cudaOccResult r;
        if (cudaOccMaxActiveBlocksPerMultiprocessor(&r, &prop, &kernel, &state, threads, shared) != CUDA_OCC_SUCCESS)
            return false;
        const int shared_limit = r.blockLimitSharedMem == INT_MAX ? -1 : r.blockLimitSharedMem;
        std::printf("%d %u %d %d %d %d %d %zu\n", r.activeBlocksPerMultiprocessor, r.limitingFactors, r.blockLimitWarps,
                    r.blockLimitRegs, shared_limit, r.blockLimitBlocks, r.allocatedRegistersPerBlock,
                    r.allocatedSharedMemPerBlock);
        std::fflush(stdout);
        return true;
    }
    return false;
}

int main() {
    int target, threads, registers;
    size_t shared;
    std::printf("%d.%d\n", __CUDA_OCC_MAJOR__, __CUDA_OCC_MINOR__);
    std::fflush(stdout);
    while (std::scanf("%d %d %d %zu", &target, &threads, &registers, &shared) == 4)
        if (!ask(target, threads, registers, shared)) return 1;
    return 0;
}
