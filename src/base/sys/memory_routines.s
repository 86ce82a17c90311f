# memmove, memcpy, memset, memcmp and bcmp for x86-64, in Intel syntax. They use SSE2 alone, which each x86-64 processor
# has. The C library's own copy and compare by bytes, or start a string instruction for a few bytes.
#
# All take their arguments in rdi, rsi and rdx, return in rax, and change only registers that a callee may change.
# Sizes up to 128 bytes are read with overlapping loads before the first store. A loop needs no head or tail by bytes:
# its first and last block overlap the others.

# gatewren_memmove(to: rdi, from: rsi, size: rdx) -> to. The areas may overlap. It is memcpy too.
.section .text.gatewren_memmove,"ax",@progbits
.globl gatewren_memmove
.type gatewren_memmove,@function
.p2align 5
gatewren_memmove:
    mov rax, rdi
    cmp rdx, 16
    jb 20f
    cmp rdx, 32
    ja 30f
    movups xmm0, [rsi]
    movups xmm1, [rsi + rdx - 16]
    movups [rdi], xmm0
    movups [rdi + rdx - 16], xmm1
    ret
20: # less than 16
    cmp edx, 8
    jb 21f
    mov rcx, [rsi]
    mov rsi, [rsi + rdx - 8]
    mov [rdi], rcx
    mov [rdi + rdx - 8], rsi
    ret
21: # less than 8
    cmp edx, 4
    jb 22f
    mov ecx, [rsi]
    mov esi, [rsi + rdx - 4]
    mov [rdi], ecx
    mov [rdi + rdx - 4], esi
    ret
22: # less than 4
    cmp edx, 1
    jb 24f
    movzx ecx, byte ptr [rsi]
    je 23f
    movzx esi, word ptr [rsi + rdx - 2]
    mov [rdi + rdx - 2], si
23:
    mov [rdi], cl
24:
    ret
30: # more than 32
    cmp rdx, 64
    ja 31f
    movups xmm0, [rsi]
    movups xmm1, [rsi + 16]
    movups xmm2, [rsi + rdx - 32]
    movups xmm3, [rsi + rdx - 16]
    movups [rdi], xmm0
    movups [rdi + 16], xmm1
    movups [rdi + rdx - 32], xmm2
    movups [rdi + rdx - 16], xmm3
    ret
31: # more than 64
    cmp rdx, 128
    ja 40f
    movups xmm0, [rsi]
    movups xmm1, [rsi + 16]
    movups xmm2, [rsi + 32]
    movups xmm3, [rsi + 48]
    movups xmm4, [rsi + rdx - 64]
    movups xmm5, [rsi + rdx - 48]
    movups xmm6, [rsi + rdx - 32]
    movups xmm7, [rsi + rdx - 16]
    movups [rdi], xmm0
    movups [rdi + 16], xmm1
    movups [rdi + 32], xmm2
    movups [rdi + 48], xmm3
    movups [rdi + rdx - 64], xmm4
    movups [rdi + rdx - 48], xmm5
    movups [rdi + rdx - 32], xmm6
    movups [rdi + rdx - 16], xmm7
    ret
40: # more than 128: backwards if the destination begins within the source
    mov rcx, rdi
    sub rcx, rsi
    cmp rcx, rdx
    jb 50f
    # From a page on, the string instruction is faster, unless the areas overlap closely. A processor may be slow with
    # single bytes, so it moves words of 8, and the last 8 bytes are stored by themselves.
    cmp rdx, 4096
    jb 42f
    cmp rcx, -64
    ja 42f
    mov r8, [rsi + rdx - 8]
    lea r9, [rdi + rdx - 8]
    mov rcx, rdx
    shr rcx, 3
    rep movsq
    mov [r9], r8
    ret
42: # The first 16 and the last 64 bytes are stored last, because the loop may read from where they belong.
    movups xmm4, [rsi]
    movups xmm5, [rsi + rdx - 64]
    movups xmm6, [rsi + rdx - 48]
    movups xmm7, [rsi + rdx - 32]
    movups xmm8, [rsi + rdx - 16]
    # rcx: an offset at which the destination is aligned; rdx: the offset of the last 64 bytes.
    mov ecx, edi
    neg ecx
    and ecx, 15
    sub rdx, 64
    .p2align 4
41:
    movups xmm0, [rsi + rcx]
    movups xmm1, [rsi + rcx + 16]
    movups xmm2, [rsi + rcx + 32]
    movups xmm3, [rsi + rcx + 48]
    movaps [rdi + rcx], xmm0
    movaps [rdi + rcx + 16], xmm1
    movaps [rdi + rcx + 32], xmm2
    movaps [rdi + rcx + 48], xmm3
    add rcx, 64
    cmp rcx, rdx
    jb 41b
    movups [rdi], xmm4
    movups [rdi + rdx], xmm5
    movups [rdi + rdx + 16], xmm6
    movups [rdi + rdx + 32], xmm7
    movups [rdi + rdx + 48], xmm8
    ret
50: # The same from the end: the first 64 and the last 16 bytes are stored last.
    movups xmm4, [rsi]
    movups xmm5, [rsi + 16]
    movups xmm6, [rsi + 32]
    movups xmm7, [rsi + 48]
    movups xmm8, [rsi + rdx - 16]
    # r8: the offset of the last 16 bytes; rdx: an offset before whose end the destination is aligned.
    lea r8, [rdx - 16]
    lea rcx, [rdi + rdx]
    and ecx, 15
    sub rdx, rcx
    .p2align 4
51:
    movups xmm0, [rsi + rdx - 16]
    movups xmm1, [rsi + rdx - 32]
    movups xmm2, [rsi + rdx - 48]
    movups xmm3, [rsi + rdx - 64]
    movaps [rdi + rdx - 16], xmm0
    movaps [rdi + rdx - 32], xmm1
    movaps [rdi + rdx - 48], xmm2
    movaps [rdi + rdx - 64], xmm3
    sub rdx, 64
    cmp rdx, 64
    ja 51b
    movups [rdi], xmm4
    movups [rdi + 16], xmm5
    movups [rdi + 32], xmm6
    movups [rdi + 48], xmm7
    movups [rdi + r8], xmm8
    ret
.size gatewren_memmove, . - gatewren_memmove

# gatewren_memset(to: rdi, byte: esi, size: rdx) -> to.
.section .text.gatewren_memset,"ax",@progbits
.globl gatewren_memset
.type gatewren_memset,@function
.p2align 5
gatewren_memset:
    mov rax, rdi
    movzx ecx, sil
    movabs r8, 0x0101010101010101
    imul rcx, r8
    cmp rdx, 16
    jb 20f
    movq xmm0, rcx
    punpcklqdq xmm0, xmm0
    movups [rdi], xmm0
    movups [rdi + rdx - 16], xmm0
    cmp rdx, 32
    jbe 70f
    movups [rdi + 16], xmm0
    movups [rdi + rdx - 32], xmm0
    cmp rdx, 64
    jbe 70f
    movups [rdi + 32], xmm0
    movups [rdi + 48], xmm0
    movups [rdi + rdx - 64], xmm0
    movups [rdi + rdx - 48], xmm0
    cmp rdx, 128
    jbe 70f
    cmp rdx, 4096
    jae 72f
    # The first and the last 64 bytes are set. rcx: an aligned place in the first ones; rdx: the last ones.
    lea rcx, [rdi + 64]
    and rcx, -16
    lea rdx, [rdi + rdx - 64]
    .p2align 4
71:
    movaps [rcx], xmm0
    movaps [rcx + 16], xmm0
    movaps [rcx + 32], xmm0
    movaps [rcx + 48], xmm0
    add rcx, 64
    cmp rcx, rdx
    jb 71b
70:
    ret
72: # The last 16 bytes are set.
    mov r9, rdi
    mov rax, rcx
    mov rcx, rdx
    shr rcx, 3
    rep stosq
    mov rax, r9
    ret
20: # less than 16
    cmp edx, 8
    jb 21f
    mov [rdi], rcx
    mov [rdi + rdx - 8], rcx
    ret
21: # less than 8
    cmp edx, 4
    jb 22f
    mov [rdi], ecx
    mov [rdi + rdx - 4], ecx
    ret
22: # less than 4
    cmp edx, 1
    jb 24f
    mov [rdi], cl
    je 24f
    mov [rdi + rdx - 2], cx
24:
    ret
.size gatewren_memset, . - gatewren_memset

# gatewren_memcmp(left: rdi, right: rsi, size: rdx) -> the difference of the first bytes that differ, else 0. It is
# bcmp too.
.section .text.gatewren_memcmp,"ax",@progbits
.globl gatewren_memcmp
.type gatewren_memcmp,@function
.p2align 5
gatewren_memcmp:
    cmp rdx, 16
    jb 20f
    # rdx: the offset of the last 16 bytes.
    sub rdx, 16
    xor ecx, ecx
    .p2align 4
71:
    cmp rcx, rdx
    jae 2f
    movups xmm0, [rdi + rcx]
    movups xmm1, [rsi + rcx]
    pcmpeqb xmm0, xmm1
    pmovmskb eax, xmm0
    add rcx, 16
    sub eax, 0xffff
    je 71b
    sub rcx, 16
    jmp 3f
2:
    mov rcx, rdx
    movups xmm0, [rdi + rcx]
    movups xmm1, [rsi + rcx]
    pcmpeqb xmm0, xmm1
    pmovmskb eax, xmm0
    sub eax, 0xffff
    je 4f
3: # eax has a bit of the equal bytes, minus 0xffff: its lowest set bit is that of the first difference.
    bsf eax, eax
    add rcx, rax
    movzx eax, byte ptr [rdi + rcx]
    movzx ecx, byte ptr [rsi + rcx]
    sub eax, ecx
4:
    ret
20: # less than 16
    cmp edx, 8
    jb 21f
    mov rax, [rdi]
    mov rcx, [rsi]
    cmp rax, rcx
    jne 25f
    mov rax, [rdi + rdx - 8]
    mov rcx, [rsi + rdx - 8]
    cmp rax, rcx
    jne 25f
    xor eax, eax
    ret
21: # less than 8
    cmp edx, 4
    jb 22f
    mov eax, [rdi]
    mov ecx, [rsi]
    cmp eax, ecx
    jne 25f
    mov eax, [rdi + rdx - 4]
    mov ecx, [rsi + rdx - 4]
    cmp eax, ecx
    jne 25f
    xor eax, eax
    ret
22: # less than 4
    xor eax, eax
    cmp edx, 1
    jb 24f
    movzx eax, byte ptr [rdi]
    movzx ecx, byte ptr [rsi]
    jne 23f
    sub eax, ecx
    ret
23: # 2 or 3: the bytes as a number, the first one highest
    shl eax, 16
    shl ecx, 16
    movzx r8d, byte ptr [rdi + 1]
    movzx r9d, byte ptr [rsi + 1]
    shl r8d, 8
    shl r9d, 8
    or eax, r8d
    or ecx, r9d
    movzx r8d, byte ptr [rdi + rdx - 1]
    movzx r9d, byte ptr [rsi + rdx - 1]
    or eax, r8d
    or ecx, r9d
    sub eax, ecx
24:
    ret
25: # The words differ: the lower one has the lower byte at the first difference.
    bswap rax
    bswap rcx
    cmp rax, rcx
    sbb eax, eax
    or eax, 1
    ret
.size gatewren_memcmp, . - gatewren_memcmp
.text
