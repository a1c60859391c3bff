/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The functions we stand in front of: the next definition after ours in the process (libc's, or that
 * of another preloaded library such as librspreload).
 */
#ifndef UIWARP_REAL_CALLS_H
#define UIWARP_REAL_CALLS_H

#include <dirent.h>
#include <glob.h>
#include <link.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>

#define HOOK __attribute__((visibility("default")))

/* Structures and names with and without "64" are the same on the systems we build for. */
_Static_assert(sizeof(long) == 8 && sizeof(off_t) == 8, "64-bit systems only");
_Static_assert(sizeof(struct stat) == sizeof(struct stat64), "struct stat");

typedef int scandir_filter(const struct dirent *);
typedef int scandir_order(const struct dirent **, const struct dirent **);
typedef int scandir64_filter(const struct dirent64 *);
typedef int scandir64_order(const struct dirent64 **, const struct dirent64 **);
typedef int glob_error(const char *, int);
typedef int main_function(int, char **, char **);

/* X(result, name, (arguments)), for functions that every glibc we support has. */
#define UIWARP_REAL_CALLS(X)                                                                       \
	X(int, open, (const char *, int, ...))                                                     \
	X(int, open64, (const char *, int, ...))                                                   \
	X(int, openat, (int, const char *, int, ...))                                              \
	X(int, openat64, (int, const char *, int, ...))                                            \
	X(int, __open_2, (const char *, int))                                                      \
	X(int, __open64_2, (const char *, int))                                                    \
	X(int, __openat_2, (int, const char *, int))                                               \
	X(int, __openat64_2, (int, const char *, int))                                             \
	X(FILE *, fopen, (const char *, const char *))                                             \
	X(FILE *, fopen64, (const char *, const char *))                                           \
	X(FILE *, freopen, (const char *, const char *, FILE *))                                   \
	X(FILE *, freopen64, (const char *, const char *, FILE *))                                 \
	X(int, stat, (const char *, struct stat *))                                                \
	X(int, stat64, (const char *, struct stat64 *))                                            \
	X(int, lstat, (const char *, struct stat *))                                               \
	X(int, lstat64, (const char *, struct stat64 *))                                           \
	X(int, fstat, (int, struct stat *))                                                        \
	X(int, fstat64, (int, struct stat64 *))                                                    \
	X(int, fstatat, (int, const char *, struct stat *, int))                                   \
	X(int, fstatat64, (int, const char *, struct stat64 *, int))                               \
	X(int, statx, (int, const char *, int, unsigned, struct statx *))                          \
	X(int, access, (const char *, int))                                                        \
	X(int, faccessat, (int, const char *, int, int))                                           \
	X(int, euidaccess, (const char *, int))                                                    \
	X(ssize_t, readlink, (const char *, char *, size_t))                                       \
	X(ssize_t, readlinkat, (int, const char *, char *, size_t))                                \
	X(ssize_t, __readlink_chk, (const char *, char *, size_t, size_t))                         \
	X(ssize_t, __readlinkat_chk, (int, const char *, char *, size_t, size_t))                  \
	X(char *, realpath, (const char *, char *))                                                \
	X(char *, __realpath_chk, (const char *, char *, size_t))                                  \
	X(char *, canonicalize_file_name, (const char *))                                          \
	X(ssize_t, getxattr, (const char *, const char *, void *, size_t))                         \
	X(ssize_t, lgetxattr, (const char *, const char *, void *, size_t))                        \
	X(int, chdir, (const char *))                                                              \
	X(char *, getcwd, (char *, size_t))                                                        \
	X(char *, __getcwd_chk, (char *, size_t, size_t))                                          \
	X(char *, get_current_dir_name, (void))                                                    \
	X(DIR *, opendir, (const char *))                                                          \
	X(int, scandir, (const char *, struct dirent ***, scandir_filter *, scandir_order *))      \
	X(int, scandir64,                                                                          \
	  (const char *, struct dirent64 ***, scandir64_filter *, scandir64_order *))              \
	X(int, glob, (const char *, int, glob_error *, glob_t *))                                  \
	X(int, glob64, (const char *, int, glob_error *, glob64_t *))                              \
	X(ssize_t, write, (int, const void *, size_t))                                             \
	X(ssize_t, writev, (int, const struct iovec *, int))                                       \
	X(int, close, (int))                                                                       \
	X(int, dup, (int))                                                                         \
	X(int, dup2, (int, int))                                                                   \
	X(int, dup3, (int, int, int))                                                              \
	X(int, fcntl, (int, int, ...))                                                             \
	X(int, fcntl64, (int, int, ...))                                                           \
	X(int, ioctl, (int, unsigned long, ...))                                                   \
	X(int, close_range, (unsigned, unsigned, int))                                             \
	X(void, closefrom, (int))                                                                  \
	X(int, socket, (int, int, int))                                                            \
	X(ssize_t, send, (int, const void *, size_t, int))                                         \
	X(ssize_t, sendto,                                                                         \
	  (int, const void *, size_t, int, const struct sockaddr *, socklen_t))                    \
	X(ssize_t, sendmsg, (int, const struct msghdr *, int))                                     \
	X(void *, dlopen, (const char *, int))                                                     \
	X(int, dl_iterate_phdr, (int (*)(struct dl_phdr_info *, size_t, void *), void *))          \
	X(int, munmap, (void *, size_t))                                                           \
	X(void *, mremap, (void *, size_t, size_t, int, ...))                                      \
	X(void *, mmap, (void *, size_t, int, int, int, off_t))                                    \
	X(void *, mmap64, (void *, size_t, int, int, int, off_t))                                  \
	X(void, exit, (int))                                                                       \
	X(void, _exit, (int))                                                                      \
	X(int, __libc_start_main,                                                                  \
	  (main_function *, int, char **, void (*)(void), void (*)(void), void (*)(void), void *))

struct real_calls {
#define UIWARP_FIELD(result, name, arguments) result(*name) arguments;
	UIWARP_REAL_CALLS(UIWARP_FIELD)
#undef UIWARP_FIELD
};

extern struct real_calls real_calls;
extern int real_calls_known;

/* Looks all of them up. Any thread, any time, several times: the outcome is the same. */
void find_real_calls(void);

/* The table, filled: a hook may run before our constructor did. */
static inline const struct real_calls *real(void)
{
	if (__builtin_expect(!__atomic_load_n(&real_calls_known, __ATOMIC_ACQUIRE), 0))
		find_real_calls();
	return &real_calls;
}

#endif
